//! The plugins of this server by role.
//!
//! In: the operator's list, the component folders, the factory. Out: all plugins of a role, including unavailable ones.
//! Listed plugins are loaded at once. Detectors and checks in the component folders are loaded on the first call of
//! their role. Hooks must be listed. Dialects have a module of their own (`dialects`).

use std::sync::{Arc, Once, PoisonError, RwLock};

use terrane_app::ports::plugins::PluginFault;

use crate::bindings::check::CheckPlugin;
use crate::bindings::detector::DetectorPlugin;
use crate::factory::PluginFactory;
use crate::governance::guest::PolicyGuest;
use crate::loader::SearchPath;
use crate::plugin::{ConfiguredPlugin, PluginSettings};
use crate::plugin_slot::{AnyPluginSlot, PluginSlot};
use crate::role::Role;
use crate::signature::PublicKey;

pub(crate) struct Registry {
    factory: Arc<PluginFactory>,
    search: SearchPath,
    /// The trusted keys for files that the operator does not list. One of these keys must have signed such a file,
    /// unless it is in a folder of the program. Empty if no signature is required.
    keys: Vec<PublicKey>,
    detectors: Table<DetectorPlugin>,
    checks: Table<CheckPlugin>,
    hooks: Table<PolicyGuest>,
}

/// The choice of the plugins that a list contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inventory {
    /// The plugins that were loaded so far.
    Loaded,
    /// The loaded plugins and those in the component folders, which are loaded if necessary.
    WithFolders,
}

pub(crate) struct Table<R: Role> {
    slots: RwLock<Vec<Arc<PluginSlot<R>>>>,
    searched: Once,
}

impl<R: Role> Default for Table<R> {
    fn default() -> Self {
        Table { slots: RwLock::default(), searched: Once::new() }
    }
}

impl<R: Role> Table<R> {
    fn slots(&self) -> Vec<Arc<PluginSlot<R>>> {
        // An entry is added in one step, so a panic leaves the list consistent.
        self.slots.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn add(&self, slot: Arc<PluginSlot<R>>) {
        self.slots.write().unwrap_or_else(PoisonError::into_inner).push(slot);
    }
}

/// A role whose plugins are in a table of the registry.
pub(crate) trait RegisteredRole: Role {
    /// The prefix of the names of files that need not be listed. `None` if plugins of the role must be listed.
    const PREFIX: Option<&'static str>;

    fn table(registry: &Registry) -> &Table<Self>;
}

macro_rules! registered {
    ($role:ident, $field:ident, $prefix:expr) => {
        impl RegisteredRole for $role {
            const PREFIX: Option<&'static str> = $prefix;

            fn table(registry: &Registry) -> &Table<Self> {
                &registry.$field
            }
        }
    };
}

registered!(DetectorPlugin, detectors, Some("detector-"));
registered!(CheckPlugin, checks, Some("check-"));
registered!(PolicyGuest, hooks, None);

impl Registry {
    pub(crate) fn new(factory: Arc<PluginFactory>, search: SearchPath, keys: Vec<PublicKey>) -> Registry {
        Registry {
            factory,
            search,
            keys,
            detectors: Table::default(),
            checks: Table::default(),
            hooks: Table::default(),
        }
    }

    /// Loads a plugin that the operator lists.
    pub(crate) fn load_listed<R: RegisteredRole>(&self, settings: PluginSettings) {
        R::table(self).add(PluginSlot::load(settings, &self.factory));
    }

    /// Returns every plugin of a role: the listed ones in their order, then those found in folders.
    pub(crate) fn configured<R: RegisteredRole>(&self) -> Vec<ConfiguredPlugin<R>> {
        self.slots::<R>().iter().map(|slot| slot.configured()).collect()
    }

    /// Returns whether the role has at least one plugin, which may be unavailable.
    pub(crate) fn has_any<R: RegisteredRole>(&self) -> bool {
        self.search_once::<R>();
        !R::table(self).slots.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    fn slots<R: RegisteredRole>(&self) -> Vec<Arc<PluginSlot<R>>> {
        self.search_once::<R>();
        R::table(self).slots()
    }

    fn search_once<R: RegisteredRole>(&self) {
        if let Some(prefix) = R::PREFIX {
            R::table(self).searched.call_once(|| self.search_folders::<R>(prefix));
        }
    }

    /// Loads the files in the component folders whose name begins with the prefix. If a plugin with a file's name
    /// exists already, that plugin stays: a listed plugin, or one from an earlier folder. The file is then ignored if
    /// the plugin is listed or the file is a copy, and otherwise refused.
    fn search_folders<R: RegisteredRole>(&self, prefix: &str) {
        for (name, source) in self.search.files().into_iter().filter(|(name, _)| name.starts_with(prefix)) {
            let slots = R::table(self).slots();
            let taken = slots.iter().find(|slot| slot.settings.id == name);
            if taken.is_some_and(|slot| slot.is_listed() || slot.settings.source == source || slot.is_copy(&source)) {
                continue;
            }
            let keys = if self.search.is_programs(&source) { Vec::new() } else { self.keys.clone() };
            let settings = PluginSettings { keys, is_found: true, ..PluginSettings::new(name, R::ROLE, source) };
            let slot = match taken.map(|slot| slot.settings.source.clone()) {
                Some(path) => {
                    let id = settings.id.clone();
                    PluginSlot::refused(settings, PluginFault::IdTaken { id, path })
                }
                None => PluginSlot::load(settings, &self.factory),
            };
            R::table(self).add(slot);
        }
    }

    /// Returns the slots of every role.
    pub(crate) fn slots_of_all_roles(&self, inventory: Inventory) -> Vec<Arc<dyn AnyPluginSlot>> {
        fn of<R: RegisteredRole>(
            registry: &Registry,
            inventory: Inventory,
        ) -> impl Iterator<Item = Arc<dyn AnyPluginSlot>> {
            let slots = match inventory {
                Inventory::Loaded => R::table(registry).slots(),
                Inventory::WithFolders => registry.slots::<R>(),
            };
            slots.into_iter().map(|slot| slot as Arc<dyn AnyPluginSlot>)
        }
        let hooks = of::<PolicyGuest>(self, inventory);
        hooks.chain(of::<DetectorPlugin>(self, inventory)).chain(of::<CheckPlugin>(self, inventory)).collect()
    }
}
