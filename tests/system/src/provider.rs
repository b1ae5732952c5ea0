//! A real OpenID Connect provider (npm's `oidc-provider`) as a child process, and a browser for its pages.
//!
//! In: the files of `cargo xtask setup` in `.prepared/oidc-provider`. Out: a provider on its own port, or the reason
//! why this machine cannot run it. The browser keeps cookies for each address, follows redirects itself, and fills in
//! the two forms of the provider: the sign-in, and the consent.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use crate::engines::Missing;
use crate::{Answer, path};

/// The largest number of steps of a sign-in, which is more than a sign-in needs.
const MAX_STEPS: usize = 20;

/// A running provider. It is stopped when this value is dropped.
pub struct OidcProvider {
    child: Child,
    pub port: u16,
    callback: String,
}

fn modules() -> PathBuf {
    path(".prepared/oidc-provider/node_modules")
}

impl OidcProvider {
    /// Returns the tool that the provider needs and this machine lacks; `None` if the provider can run.
    pub fn missing() -> Option<Missing> {
        let is_installed = modules().join("oidc-provider/package.json").is_file();
        if !is_installed {
            return Some(Missing("oidc-provider has not been prepared: `cargo xtask setup`, with npm".to_owned()));
        }
        let node = Command::new("node").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        node.is_err().then(|| Missing("`node` is not installed".to_owned()))
    }

    /// Starts a provider that signs with a new key under this id, and redirects browsers to `callback`.
    ///
    /// # Errors
    /// The provider does not start.
    pub fn start(port: u16, kid: &str, callback: &str) -> Result<Self> {
        let mut command = Command::new("node");
        command.arg(path("tests/system/provider/provider.mjs")).arg(modules());
        command.args([&port.to_string(), kid, callback]).stdin(Stdio::null()).stderr(Stdio::null());
        let mut child = command.stdout(Stdio::piped()).spawn().context("starting node")?;
        let mut lines = BufReader::new(child.stdout.take().context("no standard output")?);
        let mut line = String::new();
        while lines.read_line(&mut line)? > 0 {
            if line.trim() == "ready" {
                // The rest of the output is discarded, because an unread pipe would block the provider.
                std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
                return Ok(OidcProvider { child, port, callback: callback.to_owned() });
            }
            line.clear();
        }
        let _ = child.kill();
        bail!("the provider ended before it began: {:?}", child.wait()?)
    }

    pub fn issuer(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Stops the provider and returns its port.
    ///
    /// # Errors
    /// The provider cannot be stopped.
    pub fn stop(mut self) -> Result<u16> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(self.port)
    }

    /// Returns an access token for a program, which has its own client credentials.
    ///
    /// # Errors
    /// The provider returns no token.
    pub fn robot_token(&self) -> Result<String> {
        let form = "grant_type=client_credentials&client_id=robot&client_secret=a+secret+of+the+robot&\
                    resource=urn:terrane&scope=read";
        let answer = Browser::default().send("POST", &format!("{}/token", self.issuer()), Some(form))?;
        let token = answer.json()?["access_token"].as_str().map(str::to_owned);
        token.with_context(|| answer.body.clone())
    }

    /// Follows the provider's pages from the login URL up to the callback, as `user`. Returns the last URL.
    ///
    /// # Errors
    /// The provider shows a page that is neither the sign-in nor the consent.
    pub fn sign_in(&self, browser: &mut Browser, login: &str, user: &str) -> Result<String> {
        let (mut url, mut form) = (login.to_owned(), None);
        for _ in 0..MAX_STEPS {
            let method = if form.is_some() { "POST" } else { "GET" };
            let answer = browser.send(method, &url, form.take().as_deref())?;
            if let Some(location) = header(&answer.head, "location") {
                url = absolute(&url, location);
                if url.starts_with(&self.callback) {
                    return Ok(url);
                }
                continue;
            }
            ensure!(answer.status == 200, "{url}: {}", answer.body);
            let action = between(&answer.body, "action=\"", "\"").context("a page without a form")?;
            url = absolute(&url, action);
            let is_login = answer.body.contains("name=\"login\"");
            form = Some(if is_login {
                format!("prompt=login&login={user}&password=x")
            } else {
                "prompt=consent".to_owned()
            });
        }
        bail!("the provider redirects in a cycle at {url}")
    }
}

impl Drop for OidcProvider {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A browser, which consists of its cookies, by address and name.
#[derive(Debug, Default)]
pub struct Browser {
    cookies: BTreeMap<(String, String), String>,
}

impl Browser {
    /// Sends one request and returns the response. Redirects are not followed.
    ///
    /// # Errors
    /// The response is not complete.
    pub fn send(&mut self, method: &str, url: &str, form: Option<&str>) -> Result<Answer> {
        let rest = url.strip_prefix("http://").with_context(|| format!("{url} is not plain http"))?;
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let address: SocketAddr = host.parse()?;
        let own = self.cookies.iter().filter(|((of, _), _)| of == host);
        let cookies: Vec<String> = own.map(|((_, name), value)| format!("{name}={value}")).collect();
        let body = form.unwrap_or_default();
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(10))?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        write!(
            stream,
            "{method} /{path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/x-www-form-urlencoded\r\n\
             Content-Length: {}\r\nCookie: {}\r\nConnection: close\r\n\r\n{body}",
            body.len(),
            cookies.join("; ")
        )?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let (head, body) = text.split_once("\r\n\r\n").context("an answer without an empty line")?;
        self.keep(host, head);
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).context("no status")?;
        Ok(Answer { status, head: head.to_owned(), body: body.to_owned() })
    }

    fn keep(&mut self, host: &str, head: &str) {
        let lines = head.lines().filter_map(|line| line.split_once(": "));
        for (_, line) in lines.filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie")) {
            let pair = line.split(';').next().unwrap_or_default();
            if let Some((name, value)) = pair.split_once('=') {
                self.cookies.insert((host.to_owned(), name.to_owned()), value.to_owned());
            }
        }
    }
}

/// Returns a header's value.
pub fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(start)?;
    Some(rest.split_once(end)?.0)
}

fn absolute(from: &str, location: &str) -> String {
    if location.starts_with("http") {
        return location.to_owned();
    }
    let host = from.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
    format!("{host}{location}")
}
