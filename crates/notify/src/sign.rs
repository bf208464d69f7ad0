//! Signatures of webhooks, by the Standard Webhooks specification: whoever has the secret can tell that a message
//! is ours, which one it is, and when it was sent.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use ring::hmac;

/// What a secret begins with when it is written down.
const PREFIX: &str = "whsec_";

/// The key of a signature. Shown nowhere.
#[derive(Clone)]
pub struct Key(hmac::Key);

impl Key {
    /// From `whsec_…`, or the base64 behind it.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let bytes = BASE64_STANDARD.decode(text.strip_prefix(PREFIX).unwrap_or(text)).ok()?;
        (!bytes.is_empty()).then(|| Self(hmac::Key::new(hmac::HMAC_SHA256, &bytes)))
    }

    /// The value of `webhook-signature`.
    pub fn sign(&self, id: &str, timestamp: i64, body: &str) -> String {
        let tag = hmac::sign(&self.0, format!("{id}.{timestamp}.{body}").as_bytes());
        format!("v1,{}", BASE64_STANDARD.encode(tag))
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_specification_is_signed_as_it_says() {
        let key = Key::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signed = key.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert!(!format!("{key:?}").contains("MfKQ"));
    }

    #[test]
    fn what_is_no_secret_is_refused() {
        for text in ["", "whsec_", "whsec_not base64!"] {
            assert!(Key::parse(text).is_none(), "{text}");
        }
    }
}
