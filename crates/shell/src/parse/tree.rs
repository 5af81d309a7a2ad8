//! The tree of a shell text: lists of pipelines of commands, made of words. Owns no meaning: words are split into
//! parts, nothing is expanded. Spans are byte offsets into the text that was parsed, not into what holds it.

use std::borrow::Cow;

use crate::word::Span;

#[derive(Debug, Default)]
pub(crate) struct List<'a> {
    pub items: Vec<Item<'a>>,
}

/// Pipelines joined by `&&` and `||`, up to `;`, `&` or a newline.
#[derive(Debug)]
pub(crate) struct Item<'a> {
    pub chain: Vec<Pipeline<'a>>,
    /// Where its `&` is.
    pub background: Option<Span>,
}

#[derive(Debug)]
pub(crate) struct Pipeline<'a> {
    pub stages: Vec<Command<'a>>,
}

#[derive(Debug)]
pub(crate) struct Command<'a> {
    pub kind: Kind<'a>,
    pub redirects: Vec<Redirection<'a>>,
    pub span: Span,
}

#[derive(Debug)]
pub(crate) enum Kind<'a> {
    Simple(SimpleNode<'a>),
    Subshell(List<'a>),
    Group(List<'a>),
    If {
        branches: Vec<(List<'a>, List<'a>)>,
        otherwise: Option<List<'a>>,
    },
    /// `while` and `until`.
    Loop {
        condition: List<'a>,
        body: List<'a>,
    },
    /// `for` and `select`; no words means the positional parameters.
    For {
        name: &'a str,
        words: Option<Vec<Node<'a>>>,
        body: List<'a>,
    },
    CountedFor {
        header: Vec<Part<'a>>,
        body: List<'a>,
    },
    Case {
        subject: Node<'a>,
        arms: Vec<(Vec<Node<'a>>, List<'a>)>,
    },
    Arithmetic(Vec<Part<'a>>),
    /// `[[ … ]]`, operators among the words.
    Condition(Vec<Node<'a>>),
    Function {
        name: Node<'a>,
        body: Box<Command<'a>>,
    },
    Coprocess(Box<Command<'a>>),
}

#[derive(Debug, Default)]
pub(crate) struct SimpleNode<'a> {
    pub assigns: Vec<Assign<'a>>,
    pub words: Vec<Node<'a>>,
    /// Array operands of `declare` and its kin: `declare -a x=(a b)`.
    pub arrays: Vec<Assign<'a>>,
}

#[derive(Debug)]
pub(crate) struct Assign<'a> {
    pub span: Span,
    pub name: &'a str,
    pub subscript: Option<Vec<Part<'a>>>,
    pub append: bool,
    pub value: AssignValue<'a>,
}

#[derive(Debug)]
pub(crate) enum AssignValue<'a> {
    Word(Node<'a>),
    Array(Vec<Element<'a>>),
}

/// One element of an array: `word` or `[subscript]=word`.
#[derive(Debug)]
pub(crate) struct Element<'a> {
    pub subscript: Option<Vec<Part<'a>>>,
    pub value: Node<'a>,
}

#[derive(Debug)]
pub(crate) struct Redirection<'a> {
    pub span: Span,
    pub op: RedirectOp,
    pub fd: Option<u32>,
    /// `None` for a heredoc, whose body is in `here`.
    pub target: Option<Node<'a>>,
    /// Index into [`super::Parsed::heres`].
    pub here: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RedirectOp {
    Read,
    Write,
    Append,
    ReadWrite,
    DuplicateIn,
    DuplicateOut,
    /// `&>` and `&>>`
    Both {
        append: bool,
    },
    HereDoc,
    HereString,
}

#[derive(Debug, Default)]
pub(crate) struct Here<'a> {
    /// Expanding bodies have their parts; literal ones a single quoted text.
    pub parts: Vec<Part<'a>>,
    pub span: Option<Span>,
}

/// One word as written.
#[derive(Debug)]
pub(crate) struct Node<'a> {
    pub span: Span,
    pub parts: Vec<Part<'a>>,
}

#[derive(Clone, Debug)]
pub(crate) enum Part<'a> {
    Text {
        text: Cow<'a, str>,
        quoted: bool,
    },
    Parameter(std::rc::Rc<Parameter<'a>>),
    Command(std::rc::Rc<Substitution<'a>>),
    /// Parsed when walked: escapes are removed first. `offset` is where the text starts when nothing was removed.
    Backtick {
        text: Cow<'a, str>,
        offset: Option<usize>,
        quoted: bool,
        span: Span,
    },
    Process(std::rc::Rc<Substitution<'a>>),
    Arithmetic(std::rc::Rc<Vec<Part<'a>>>),
}

#[derive(Debug)]
pub(crate) struct Substitution<'a> {
    pub list: List<'a>,
    pub quoted: bool,
    /// `>(…)`: it reads what the command around it writes.
    pub fed: bool,
    pub span: Span,
}

#[derive(Debug)]
pub(crate) struct Parameter<'a> {
    pub span: Span,
    pub name: &'a str,
    pub subscript: Option<Vec<Part<'a>>>,
    /// `${!name}`
    pub indirect: bool,
    pub quoted: bool,
    pub op: Op<'a>,
}

#[derive(Debug)]
pub(crate) enum Op<'a> {
    None,
    /// `${#name}`
    Length,
    Default {
        colon: bool,
        word: Vec<Part<'a>>,
    },
    AssignDefault {
        colon: bool,
        word: Vec<Part<'a>>,
    },
    Error {
        word: Vec<Part<'a>>,
    },
    Alternate {
        colon: bool,
        word: Vec<Part<'a>>,
    },
    Slice(Vec<Part<'a>>),
    Strip {
        prefix: bool,
        pattern: Vec<Part<'a>>,
    },
    Replace {
        all: bool,
        pattern: Vec<Part<'a>>,
        with: Vec<Part<'a>>,
    },
    Case(Vec<Part<'a>>),
    Transform(char),
    /// `${!prefix*}`, `${!prefix@}`
    Names,
}
