//! Where Ghidra is, what shows that one may ask it, and how long it may take: the variables that its users have always set.

use crate::config::Token;
use crate::errors::{ErrorCode, ToolError};
use base::limits;
use hyper::Uri;
use std::time::Duration;

/// The settings.
#[derive(Clone, Debug)]
pub struct GhidraSettings {
    pub(crate) host: String,
    pub(crate) port: u16,
    /// What stands before each endpoint's path; without a slash at its end.
    pub(crate) prefix: String,
    pub(crate) token: Option<Token>,
    pub(crate) timeout: Duration,
}

impl Default for GhidraSettings {
    fn default() -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            port: limits::DEFAULT_GHIDRA_PORT,
            prefix: String::new(),
            token: None,
            timeout: Duration::from_secs_f64(limits::DEFAULT_GHIDRA_TIMEOUT_S),
        }
    }
}

impl GhidraSettings {
    /// What `GHIDRA_MCP_URL`, `GHIDRA_MCP_AUTH_TOKEN` and `GHIDRA_MCP_TIMEOUT` say.
    ///
    /// # Errors
    /// `config_invalid`, naming the variable.
    pub fn resolve(variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, ToolError> {
        let given = |name: &str| variable(name).filter(|value| !value.is_empty());
        let mut settings = Self { token: given("GHIDRA_MCP_AUTH_TOKEN").map(Token::new), ..Self::default() };
        if let Some(token) = &settings.token
            && !token.secret().bytes().all(|byte| byte.is_ascii_graphic())
        {
            // A header cannot carry it; the message must not show it.
            return Err(wrong("GHIDRA_MCP_AUTH_TOKEN has a character that is no visible ASCII character"));
        }
        if let Some(url) = given("GHIDRA_MCP_URL") {
            (settings.host, settings.port, settings.prefix) = address("GHIDRA_MCP_URL", &url)?;
        }
        if let Some(seconds) = given("GHIDRA_MCP_TIMEOUT") {
            settings.timeout = timeout(&seconds)?;
        }
        Ok(settings)
    }

    /// The same for a VICE connector: `RETROSCOPE_VICE_URL`, else the address of Ghidra, which serves one too.
    ///
    /// # Errors
    /// `config_invalid`, naming the variable.
    pub fn of_vice(variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, ToolError> {
        let mut settings = Self::resolve(variable)?;
        let name = "RETROSCOPE_VICE_URL";
        if let Some(url) = variable(name).filter(|value| !value.is_empty()) {
            (settings.host, settings.port, settings.prefix) = address(name, &url)?;
            // The token is Ghidra's, and goes nowhere else.
            settings.token = None;
        }
        Ok(settings)
    }

    /// Where it is, for people.
    pub fn url(&self) -> String {
        format!("http://{}:{}{}", self.host, self.port, self.prefix)
    }
}

fn wrong(message: impl Into<String>) -> ToolError {
    ToolError::new(ErrorCode::ConfigInvalid, message)
}

fn address(name: &str, url: &str) -> Result<(String, u16, String), ToolError> {
    let refused = |what: &str| {
        wrong(format!("{name} is `{url}`; {what}"))
            .hint(format!("write it like http://127.0.0.1:{}", limits::DEFAULT_GHIDRA_PORT))
    };
    if url.contains(['?', '#']) {
        return Err(refused("it must have no query and no fragment"));
    }
    let uri: Uri = url.parse().map_err(|_| refused("it is no URL"))?;
    match uri.scheme_str() {
        Some("http") => {}
        Some("https") => {
            return Err(refused("only plain http is spoken: the plug-in serves nothing else; put a tunnel before it"));
        }
        _ => return Err(refused("it must be an absolute http URL")),
    }
    let authority = uri.authority().ok_or_else(|| refused("it names no host"))?;
    if authority.as_str().contains('@') {
        return Err(wrong(format!("{name} has a name or password in it; a token belongs in GHIDRA_MCP_AUTH_TOKEN")));
    }
    let host = authority.host();
    if host.is_empty() {
        return Err(refused("it names no host"));
    }
    // An IPv6 address stands in brackets in a URL only.
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let port = match authority.port() {
        Some(port) => port.as_u16(),
        None => 80,
    };
    Ok((host.to_owned(), port, uri.path().trim_end_matches('/').to_owned()))
}

fn timeout(text: &str) -> Result<Duration, ToolError> {
    let most = limits::MAX_GHIDRA_TIMEOUT_S;
    text.trim().parse::<f64>().ok().filter(|seconds| *seconds > 0.0 && *seconds <= most).map_or_else(
        || Err(wrong(format!("GHIDRA_MCP_TIMEOUT is `{text}`; allowed are seconds above 0 and up to {most}"))),
        |seconds| Ok(Duration::from_secs_f64(seconds)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(name: &str, value: &str) -> Result<GhidraSettings, ToolError> {
        GhidraSettings::resolve(&|asked| (asked == name).then(|| value.to_owned()))
    }

    #[test]
    fn nothing_said_is_loopback() {
        let settings = GhidraSettings::resolve(&|_| None).unwrap();
        assert_eq!(settings.url(), "http://127.0.0.1:8089");
        assert_eq!((settings.timeout, settings.token.is_none()), (Duration::from_secs(30), true));
        assert!(resolve("GHIDRA_MCP_AUTH_TOKEN", "").unwrap().token.is_none());
    }

    #[test]
    fn a_url_names_host_port_and_what_is_before_the_endpoints() {
        for (url, host, port, prefix) in [
            ("http://ghidra.example:81/", "ghidra.example", 81, ""),
            ("http://localhost", "localhost", 80, ""),
            ("http://[::1]:8089/behind/proxy/", "::1", 8089, "/behind/proxy"),
        ] {
            let settings = resolve("GHIDRA_MCP_URL", url).unwrap();
            assert_eq!((settings.host.as_str(), settings.port, settings.prefix.as_str()), (host, port, prefix));
        }
        for (url, words) in [
            ("127.0.0.1:8089", "absolute http URL"),
            ("/ghidra", "absolute http URL"),
            ("ftp://127.0.0.1", "absolute http URL"),
            ("https://127.0.0.1", "only plain http"),
            ("http://127.0.0.1/?a=b", "no query"),
            ("http://127.0.0.1/#a", "no fragment"),
            ("http://me:secret@127.0.0.1", "GHIDRA_MCP_AUTH_TOKEN"),
            ("http://", "no URL"),
        ] {
            let line = resolve("GHIDRA_MCP_URL", url).unwrap_err().line();
            assert!(line.contains(words) && line.contains("GHIDRA_MCP_URL") && !line.contains("secret"), "{line}");
        }
    }

    #[test]
    fn a_timeout_is_a_number_of_seconds() {
        assert_eq!(resolve("GHIDRA_MCP_TIMEOUT", "0.5").unwrap().timeout, Duration::from_millis(500));
        for text in ["0", "-1", "inf", "nan", "1e99", "ten"] {
            assert!(resolve("GHIDRA_MCP_TIMEOUT", text).unwrap_err().message.contains("GHIDRA_MCP_TIMEOUT"), "{text}");
        }
    }

    #[test]
    fn the_token_is_shown_nowhere() {
        let settings = resolve("GHIDRA_MCP_AUTH_TOKEN", "hush").unwrap();
        assert!(!format!("{settings:?}").contains("hush"));
        let line = resolve("GHIDRA_MCP_AUTH_TOKEN", "hush\n").unwrap_err().line();
        assert!(!line.contains("hush"), "{line}");
    }
}
