//! Which variables and parameters hold secrets, by their names and by what stands in them.

/// Does a variable of this name hold a secret? By the names people give them.
pub fn is_secret_name(name: &str) -> bool {
    is_surely_secret(name) || may_be_path(name) || has_last_word(name, "PASS")
}

/// Does this variable hold a secret? Its value decides where the name alone does not: `OLD_PWD=/src/app` is a
/// directory and `REQUIRE_AUTH=true` a switch, while any address with a password in it is a secret.
///
/// `SSH_AUTH_SOCK`, `XAUTHORITY` and `GIT_ASKPASS` are no secrets: they are paths, of which everybody may know.
/// Who may use the socket or the file that lies there is for the sandbox to say.
pub fn is_secret_variable(name: &str, value: &str) -> bool {
    (is_surely_secret(name) && !name.starts_with(GIT_SETTING))
        || (has_last_word(name, "PASS") && !is_switch(value))
        || (may_be_path(name) && !is_switch(value) && !is_path(value))
        || password_in_address(value).is_some()
}

/// What follows is the number of a setting of git's, and the variable has the setting's name: git refuses to work
/// where it is missing.
const GIT_SETTING: &str = "GIT_CONFIG_KEY_";

/// Is this one of the variables by which programs find their way into the network? An agent needs them to reach
/// its model, also where the address has a password in it; that is hidden, but not withheld.
pub fn is_proxy_name(name: &str) -> bool {
    ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"].iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// Does a parameter of this name hold a secret? Names of variables are a part of those: `PWD` is a directory
/// there, and a password here.
pub fn is_secret_key(name: &str) -> bool {
    let is_one = |word: &str| {
        let known = ["AUTHORIZATION", "PWD", "PASS", "PASSCODE", "PIN", "OTP", "COOKIE", "COOKIES"];
        known.iter().any(|known| word.eq_ignore_ascii_case(known))
    };
    let is_secret = |words: &str| is_secret_name(words) || words.split('_').any(is_one);
    if name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_') {
        return is_secret(name);
    }
    let mut words = String::with_capacity(name.len() + 4);
    let mut before = ' ';
    for c in name.chars() {
        if c.is_uppercase() && before.is_lowercase() {
            words.push('_');
        }
        words.push(if matches!(c, '-' | '.' | ' ') { '_' } else { c });
        before = c;
    }
    is_secret(&words)
}

/// The user and the password of `scheme://user:password@host`, as they stand there.
pub(super) fn password_in_address(value: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = value.split_once("://")?;
    let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    if scheme.is_empty() || !scheme.bytes().all(is_scheme) {
        return None;
    }
    // A password with a slash in it should have been encoded, and often is not.
    let (user, _) = rest.rsplit_once('@')?;
    let (name, password) = user.split_once(':')?;
    let is_port = password.split_once('/').is_some_and(|(port, _)| port.parse::<u16>().is_ok());
    (!password.is_empty() && !name.contains('/') && !is_port).then_some((name, password))
}

fn is_surely_secret(name: &str) -> bool {
    let has = |wanted: &str| name.split('_').any(|word| word.eq_ignore_ascii_case(wanted));
    let is_secret = |word: &str| SECRET_WORDS.iter().any(|secret| word.eq_ignore_ascii_case(secret));
    name.split('_').any(is_secret)
        || (name.contains('_') && has("KEY") && !has("PUBLIC"))
        || SECRET_ENDS.iter().any(|end| ends_with(name, end))
}

const SECRET_WORDS: [&str; 11] = [
    "TOKEN",
    "SECRET",
    "SECRETS",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "CREDENTIALS",
    "APIKEY",
    "PAT",
    // Whoever knows the address may speak there.
    "WEBHOOK",
];

/// The last two tell where a database is, and usually how to get in.
const SECRET_ENDS: [&str; 4] = ["TOKEN", "PASSWORD", "DATABASE_URL", "CONNECTION_STRING"];

/// Names that people give to passwords, and to directories, files and switches as well.
fn may_be_path(name: &str) -> bool {
    has_last_word(name, "PWD") || has_last_word(name, "AUTH")
}

/// Is it the last of several words? `PWD` alone is the directory one is in.
fn has_last_word(name: &str, word: &str) -> bool {
    name.rsplit_once('_').is_some_and(|(_, last)| last.eq_ignore_ascii_case(word))
}

fn is_switch(value: &str) -> bool {
    let words = ["", "true", "false", "yes", "no", "on", "off", "none", "0", "1"];
    words.iter().any(|word| value.trim().eq_ignore_ascii_case(word))
}

fn is_path(value: &str) -> bool {
    value.starts_with('/') && value.matches('/').count() > 1
}

fn ends_with(name: &str, end: &str) -> bool {
    let last = name.len().checked_sub(end.len()).and_then(|at| name.get(at..));
    last.is_some_and(|last| last.eq_ignore_ascii_case(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets() {
        for name in [
            "GITHUB_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "OPENAI_API_KEY",
            "PGPASSWORD",
            "npm_token",
            "GH_PAT",
            "SLACK_WEBHOOK_URL",
            "DATABASE_URL",
            "TEST_DATABASE_URL",
            "SMTP_PASS",
            "MYSQL_PWD",
            "HTTP_BASIC_AUTH",
            "_auth",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [
            "PATH",
            "HOME",
            "KEYBOARD",
            "KEY",
            "SSH_PUBLIC_KEY",
            "TOKENIZERS_PARALLELISM",
            "MONKEY_BUSINESS",
            "PWD",
            "OLDPWD",
            "PASS",
            "COMPASS",
            "GIT_AUTHOR",
            "GIT_AUTHOR_NAME",
            "SSH_AUTH_SOCK",
            "XAUTHORITY",
            "GIT_ASKPASS",
            "SSH_ASKPASS",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn values_decide_where_names_do_not() {
        for (name, value) in [
            ("SMTP_PASS", "x"),
            ("SMTP_PASS", "/a/b/c"),
            ("MYSQL_PWD", "hunter2"),
            ("MYSQL_PWD", "/hunter2"),
            ("NPM_AUTH", "YW5uOmh1bnRlcjI="),
            ("DATABASE_URL", "postgres://localhost/app"),
            ("REDIS", "redis://:hunter2@cache:6379/0"),
            ("BROKER", "amqp+tls://ann:p/w@mq/x"),
            ("PIP_INDEX_URL", "https://ann:t0ken@pypi.example/simple"),
        ] {
            assert!(is_secret_variable(name, value), "{name}={value}");
        }
        for (name, value) in [
            ("REQUIRE_AUTH", "true"),
            ("SECOND_PASS", "1"),
            ("OLD_PWD", "/src/app"),
            ("X_AUTH", "/run/user/1000/auth"),
            ("SSH_AUTH_SOCK", "/run/user/1000/ssh"),
            ("XAUTHORITY", "/run/user/1000/xauth"),
            ("GIT_CONFIG_KEY_0", "safe.directory"),
            ("PATH", "/bin:/usr/bin"),
            ("GIT_REMOTE", "git@example.com:a/b.git"),
            ("HOMEPAGE", "https://example.com/@ann:1"),
            ("HOMEPAGE", "http://localhost:8080/a@b"),
            ("PROXY", "http://ann@proxy:8080"),
            ("AUTHOR", "ann <ann:x@example.com>"),
        ] {
            assert!(!is_secret_variable(name, value), "{name}={value}");
        }
    }

    #[test]
    fn names_of_parameters() {
        for name in
            ["password", "apiKey", "client-secret", "X-Api-Key", "accessToken", "Authorization", "pwd"]
        {
            assert!(is_secret_key(name), "{name}");
        }
        for name in [
            "key",
            "to",
            "tokens",
            "max_tokens",
            "maxTokens",
            "spinner",
            "compass",
            "passed",
            "keyboard",
            "author",
            "auth",
        ] {
            assert!(!is_secret_key(name), "{name}");
        }
    }
}
