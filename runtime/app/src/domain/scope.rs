//! The rights of a credential.

/// A right that a route requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Query data, read metadata.
    Read,
    /// Modify definitions, run models.
    Write,
    /// Do everything, including the management of security.
    Admin,
}

impl Scope {
    pub const ALL: [Scope; 3] = [Scope::Read, Scope::Write, Scope::Admin];

    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Read => "read",
            Scope::Write => "write",
            Scope::Admin => "admin",
        }
    }

    /// Returns the scope with this name; `None` if the name is unknown.
    pub fn named(word: &str) -> Option<Scope> {
        Scope::ALL.into_iter().find(|scope| scope.as_str() == word)
    }
}

/// A set of scopes. `admin` includes `read` and `write`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Scopes {
    pub read: bool,
    pub write: bool,
    pub admin: bool,
}

impl Scopes {
    pub const READ: Scopes = Scopes { read: true, write: false, admin: false };

    pub fn hold(self, scope: Scope) -> bool {
        self.admin
            || match scope {
                Scope::Read => self.read,
                Scope::Write => self.write,
                Scope::Admin => false,
            }
    }

    #[must_use]
    pub fn with(mut self, scope: Scope) -> Self {
        match scope {
            Scope::Read => self.read = true,
            Scope::Write => self.write = true,
            Scope::Admin => self.admin = true,
        }
        self
    }

    /// Returns the names of the scopes in the set.
    pub fn names(self) -> Vec<&'static str> {
        let is_in = |scope: &Scope| match scope {
            Scope::Read => self.read,
            Scope::Write => self.write,
            Scope::Admin => self.admin,
        };
        Scope::ALL.iter().filter(|scope| is_in(scope)).map(|scope| scope.as_str()).collect()
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        scopes.into_iter().fold(Scopes::default(), Scopes::with)
    }
}
