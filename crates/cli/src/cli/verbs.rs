//! The enum of verbs and how clap reads it.
//!
//! The derived form of this describes every flag of every verb before it looks at one word, which is most of the work
//! of a short command. Here a verb's flags are described once it is the verb that was typed.

/// Makes `Verb` from lines of `/// what it does`, `"name" => Variant(Args)`.
macro_rules! verbs {
    ($(#[doc = $about:literal] $name:literal => $verb:ident($args:ty),)*) => {
        #[derive(Debug)]
        enum Verb {
            $($verb($args),)*
        }

        impl clap::FromArgMatches for Verb {
            fn from_arg_matches(matches: &clap::ArgMatches) -> Result<Self, clap::Error> {
                Self::from_arg_matches_mut(&mut matches.clone())
            }

            fn from_arg_matches_mut(matches: &mut clap::ArgMatches) -> Result<Self, clap::Error> {
                let (name, mut matches) =
                    matches.remove_subcommand().ok_or_else(|| clap::Error::new(clap::error::ErrorKind::MissingSubcommand))?;
                match name.as_str() {
                    $($name => <$args as clap::FromArgMatches>::from_arg_matches_mut(&mut matches).map(Self::$verb),)*
                    _ => Err(clap::Error::new(clap::error::ErrorKind::InvalidSubcommand)),
                }
            }

            fn update_from_arg_matches(&mut self, matches: &clap::ArgMatches) -> Result<(), clap::Error> {
                *self = Self::from_arg_matches(matches)?;
                Ok(())
            }
        }

        impl clap::Subcommand for Verb {
            fn augment_subcommands(command: clap::Command) -> clap::Command {
                command.subcommand_required(true).arg_required_else_help(true).subcommands([$(
                    clap::Command::new($name).about($about.trim_ascii()).defer(Self::described),
                )*])
            }

            fn augment_subcommands_for_update(command: clap::Command) -> clap::Command {
                Self::augment_subcommands(command)
            }

            fn has_subcommand(name: &str) -> bool {
                [$($name),*].contains(&name)
            }
        }

        impl Verb {
            /// Every verb with all its flags.
            fn every() -> Vec<clap::Command> {
                vec![$(Self::described(clap::Command::new($name))),*]
            }

            /// With all its flags. What a verb does is said here and not where the flags are, which some verbs share.
            fn described(verb: clap::Command) -> clap::Command {
                match verb.get_name() {
                    $($name => <$args as clap::Args>::augment_args(verb).about($about.trim_ascii()),)*
                    _ => verb,
                }
            }
        }
    };
}
pub(super) use verbs;
