//! Mails to the configured SMTP server.
//!
//! In: an address and a message. Out: a mail in plain text, whose `Message-ID` is the same for each attempt. The server
//! is the operator's, so its address is not checked. Not here: mails that are lost after the server accepted them.

use std::time::Duration;

use lettre::message::header::ContentType;
use lettre::message::{Mailbox, MessageBuilder};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, Tls, TlsParameters};
use lettre::{Address, AsyncSmtpTransport, AsyncTransport as _, Message, Tokio1Executor};
use terrane_app::ports::channels::{AlertMessage, ChannelError, SendError};

use crate::text::{Texts, title};

const TIMEOUT: Duration = Duration::from_secs(10);
/// The largest number of characters in the reason of a failure.
const MAX_REASON: usize = 200;

/// An SMTP server.
#[derive(Clone)]
pub struct EmailSettings {
    pub host: String,
    pub port: u16,
    pub encryption: Encryption,
    pub username: Option<String>,
    pub password: Option<String>,
    /// The sender, such as `Alerts <alerts@example.com>`.
    pub from: String,
    /// The allowed domains of receivers. If empty, all domains are allowed.
    pub domains: Vec<String>,
    pub is_cleared: bool,
}

impl std::fmt::Debug for EmailSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EmailSettings").field("host", &self.host).field("port", &self.port).finish_non_exhaustive()
    }
}

/// The encryption of a connection to an SMTP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encryption {
    /// The connection begins in plain text and then changes to TLS. A server that does not support this is refused.
    StartTls,
    Tls,
    None,
}

/// Sends mails.
pub(super) struct Mailer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
    settings: EmailSettings,
}

impl Mailer {
    /// Checks the settings, without a connection.
    pub(super) fn new(settings: EmailSettings, ca_pem: Option<&[u8]>) -> Result<Self, String> {
        let from = settings.from.parse::<Mailbox>().map_err(|error| format!("`from`: {error}"))?;
        let tls = || {
            let mut parameters = TlsParameters::builder(settings.host.clone());
            if let Some(pem) = ca_pem {
                parameters = parameters.add_root_certificate(Certificate::from_pem(pem)?);
            }
            parameters.build_rustls()
        };
        let tls = match settings.encryption {
            Encryption::None => Tls::None,
            Encryption::StartTls => Tls::Required(tls().map_err(|error| error.to_string())?),
            Encryption::Tls => Tls::Wrapper(tls().map_err(|error| error.to_string())?),
        };
        let mut transport = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(&settings.host)
            .port(settings.port)
            .tls(tls)
            .timeout(Some(TIMEOUT));
        if let (Some(username), Some(password)) = (&settings.username, &settings.password) {
            transport = transport.credentials(Credentials::new(username.clone(), password.clone()));
        }
        Ok(Mailer { transport: transport.build(), from, settings })
    }

    /// Checks that a string is an email address, and that its domain is allowed.
    pub(super) fn check(&self, address: &str) -> Result<(), ChannelError> {
        let problem = |problem: String| ChannelError::Target { problem };
        let parsed = address
            .parse::<Address>()
            .map_err(|_| problem("must be an email address like ops@example.com".to_owned()))?;
        let domains = &self.settings.domains;
        if domains.is_empty() || domains.iter().any(|domain| domain.eq_ignore_ascii_case(parsed.domain())) {
            return Ok(());
        }
        Err(problem(format!("must be an address of one of these domains: {}", domains.join(", "))))
    }

    pub(super) async fn send(&self, to: &str, texts: &Texts, message: &AlertMessage) -> Result<(), SendError> {
        let mail = self.mail(to, texts, message).map_err(|reason| SendError::Refused { reason })?;
        self.transport.send(mail).await.map(|_| ()).map_err(|error| {
            let reason: String = format!("{}: {error}", self.settings.host).chars().take(MAX_REASON).collect();
            match error.is_permanent() {
                true => SendError::Refused { reason },
                false => SendError::Temporary { reason, after: None },
            }
        })
    }

    fn mail(&self, to: &str, texts: &Texts, message: &AlertMessage) -> Result<Message, String> {
        let to = to.parse::<Address>().map_err(|error| error.to_string())?;
        let mut lines = vec![title(message), String::new()];
        lines.extend(texts.lines(message, self.settings.is_cleared));
        MessageBuilder::new()
            .from(self.from.clone())
            .to(Mailbox::new(None, to))
            .subject(title(message))
            .message_id(Some(format!("<{}@{}>", message.id, self.from.email.domain())))
            .header(ContentType::TEXT_PLAIN)
            .body(lines.join("\n"))
            .map_err(|error| error.to_string())
    }
}
