//! The plugins of this server by role, as they are now.
//!
//! In: the operator's list, the component folders, a factory. Out: all plugins of a role, the missing ones
//! included. Those that are listed are loaded at once. Detectors and checks in the component folders are
//! loaded when their role is first asked for; hooks never without being listed. Dialects are `dialects`'.

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
    /// What is found in folders other than the program's must be signed by one of these, unless empty.
    keys: Vec<PublicKey>,
    detectors: Table<DetectorPlugin>,
    checks: Table<CheckPlugin>,
    hooks: Table<PolicyGuest>,
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
        // Entries are pushed whole.
        self.slots.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn add(&self, slot: Arc<PluginSlot<R>>) {
        self.slots.write().unwrap_or_else(PoisonError::into_inner).push(slot);
    }
}

/// Which table a role's plugins are in.
pub(crate) trait RegisteredRole: Role {
    /// What the names of files begin with that are found without being listed.
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

    /// Loads what the operator lists.
    pub(crate) fn load_listed<R: RegisteredRole>(&self, settings: PluginSettings) {
        R::table(self).add(PluginSlot::load(settings, true, &self.factory));
    }

    /// Every plugin of a role: those that are listed, in their order, then those that were found.
    pub(crate) fn configured<R: RegisteredRole>(&self) -> Vec<ConfiguredPlugin<R>> {
        self.slots::<R>().iter().map(|slot| slot.configured()).collect()
    }

    /// Whether there is any, without looking at what each of them is.
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

    /// Of a name that stands twice, the first file has it: the listed one, then the program's own. A copy of it
    /// is nothing to speak of; another file is refused.
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
                None => PluginSlot::load(settings, false, &self.factory),
            };
            R::table(self).add(slot);
        }
    }

    /// All slots that have been filled, whatever their role; with those in the folders, if `all`.
    pub(crate) fn slots_of_all_roles(&self, all: bool) -> Vec<Arc<dyn AnyPluginSlot>> {
        fn of<R: RegisteredRole>(registry: &Registry, all: bool) -> impl Iterator<Item = Arc<dyn AnyPluginSlot>> {
            let slots = if all { registry.slots::<R>() } else { R::table(registry).slots() };
            slots.into_iter().map(|slot| slot as Arc<dyn AnyPluginSlot>)
        }
        let hooks = of::<PolicyGuest>(self, all);
        hooks.chain(of::<DetectorPlugin>(self, all)).chain(of::<CheckPlugin>(self, all)).collect()
    }
}
