//! The content of a scenario file: each key with its line, and units not read yet. Reports unknown keys and
//! wrong kinds of value; whether the values make sense together is checked by `check`.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::mistake::Mistakes;

/// A value, and the line that it is on.
#[derive(Clone, Debug)]
pub(super) struct At<T> {
    pub(super) value: T,
    pub(super) line: usize,
}

/// Keys that a section contains, whatever their values: these are not missing, only wrong.
pub(super) type Keys = Vec<String>;

#[derive(Debug, Default)]
pub(super) struct TypedScenario {
    pub(super) present: Keys,
    pub(super) name: Option<At<String>>,
    pub(super) routed: Option<At<bool>>,
    pub(super) congestion_control: Option<At<String>>,
    pub(super) slow_start_after_idle: Option<At<bool>>,
    pub(super) grid: Vec<String>,
    pub(super) sites: Vec<TypedSite>,
    pub(super) links: Vec<TypedLink>,
}

#[derive(Debug, Default)]
pub(super) struct TypedSite {
    pub(super) line: usize,
    pub(super) present: Keys,
    pub(super) name: Option<At<String>>,
    pub(super) nodes: Option<At<u32>>,
    pub(super) slots: Option<At<u32>>,
    pub(super) subnet: Option<At<String>>,
    pub(super) firewall: Option<At<TypedFirewall>>,
    pub(super) lan_rtt: Option<At<String>>,
    pub(super) lan_rate: Option<At<String>>,
    pub(super) fabric: Option<At<String>>,
    pub(super) batch: Option<At<String>>,
    pub(super) root: Option<At<String>>,
}

#[derive(Clone, Debug)]
pub(super) enum TypedFirewall {
    Named(String),
    Ports(String),
}

#[derive(Debug, Default)]
pub(super) struct TypedLink {
    pub(super) line: usize,
    pub(super) present: Keys,
    pub(super) between: Option<At<[String; 2]>>,
    pub(super) rtt: Option<At<String>>,
    pub(super) rate: Option<At<String>>,
    pub(super) queue: Option<At<String>>,
    pub(super) loss: Option<At<String>>,
    pub(super) seed: Option<At<u64>>,
}

/// Reads the text; `None` only if it is not TOML at all.
pub(super) fn read(text: &str, mistakes: &mut Mistakes) -> Option<TypedScenario> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut reader = Reader { text, mistakes };
    for error in &errors {
        let line = error.span().map(|span| reader.line(span.start));
        reader.mistakes.add(line, "", error.message());
    }
    // After a syntax error, half of the keys may be missing; judging the rest would only invent mistakes.
    if !errors.is_empty() {
        return None;
    }
    Some(reader.scenario(table.get_ref()))
}

struct Reader<'a> {
    text: &'a str,
    mistakes: &'a mut Mistakes,
}

type Value<'t> = Spanned<DeValue<'t>>;

impl Reader<'_> {
    fn scenario(&mut self, table: &DeTable<'_>) -> TypedScenario {
        let mut scenario = TypedScenario::default();
        for (key, value) in table.iter() {
            scenario.present.push(key.get_ref().to_string());
            match key.get_ref().as_ref() {
                "name" => scenario.name = self.string("name", value),
                "routed" => scenario.routed = self.boolean("routed", value),
                "congestion_control" => {
                    scenario.congestion_control = self.string("congestion_control", value)
                }
                "slow_start_after_idle" => {
                    scenario.slow_start_after_idle = self.boolean("slow_start_after_idle", value)
                }
                "grid" => scenario.grid = self.strings("grid", value),
                "site" => scenario.sites = self.tables("site", value, Reader::site),
                "link" => scenario.links = self.tables("link", value, Reader::link),
                _ => self.unknown(
                    key,
                    "",
                    "name, routed, congestion_control, slow_start_after_idle, grid, [[site]], [[link]]",
                ),
            }
        }
        scenario
    }

    fn site(&mut self, table: &DeTable<'_>, line: usize) -> TypedSite {
        let mut site = TypedSite {
            line,
            ..TypedSite::default()
        };
        for (key, value) in table.iter() {
            site.present.push(key.get_ref().to_string());
            match key.get_ref().as_ref() {
                "name" => site.name = self.string("site.name", value),
                "nodes" => site.nodes = self.integer("site.nodes", value),
                "slots" => site.slots = self.integer("site.slots", value),
                "subnet" => site.subnet = self.string("site.subnet", value),
                "firewall" => site.firewall = self.firewall(value),
                "lan_rtt" => site.lan_rtt = self.string("site.lan_rtt", value),
                "lan_rate" => site.lan_rate = self.string("site.lan_rate", value),
                "fabric" => site.fabric = self.string("site.fabric", value),
                "batch" => site.batch = self.string("site.batch", value),
                "root" => site.root = self.string("site.root", value),
                _ => self.unknown(
                    key,
                    "site.",
                    "name, nodes, slots, subnet, firewall, lan_rtt, lan_rate, fabric, batch, root",
                ),
            }
        }
        site
    }

    fn link(&mut self, table: &DeTable<'_>, line: usize) -> TypedLink {
        let mut link = TypedLink {
            line,
            ..TypedLink::default()
        };
        for (key, value) in table.iter() {
            link.present.push(key.get_ref().to_string());
            match key.get_ref().as_ref() {
                "between" => link.between = self.pair("link.between", value),
                "rtt" => link.rtt = self.string("link.rtt", value),
                "rate" => link.rate = self.string("link.rate", value),
                "queue" => link.queue = self.string("link.queue", value),
                "loss" => link.loss = self.string("link.loss", value),
                "seed" => link.seed = self.integer("link.seed", value),
                _ => self.unknown(key, "link.", "between, rtt, rate, queue, loss, seed"),
            }
        }
        link
    }

    fn firewall(&mut self, value: &Value<'_>) -> Option<At<TypedFirewall>> {
        let line = self.line(value.span().start);
        if let Some(name) = value.get_ref().as_str() {
            return Some(At {
                value: TypedFirewall::Named(name.to_owned()),
                line,
            });
        }
        let ports = value
            .get_ref()
            .as_table()
            .filter(|table| table.len() == 1)
            .and_then(|table| table.get("ports"));
        match ports.and_then(|ports| ports.get_ref().as_str()) {
            Some(ports) => Some(At {
                value: TypedFirewall::Ports(ports.to_owned()),
                line,
            }),
            None => self.wrong("site.firewall", value, FIREWALL_KINDS),
        }
    }

    fn tables<T>(
        &mut self,
        key: &str,
        value: &Value<'_>,
        read: fn(&mut Self, &DeTable<'_>, usize) -> T,
    ) -> Vec<T> {
        let Some(array) = value.get_ref().as_array() else {
            self.wrong::<()>(key, value, &format!("one or more [[{key}]] sections"));
            return Vec::new();
        };
        let mut all = Vec::new();
        for item in array.iter() {
            match item.get_ref().as_table() {
                Some(table) => {
                    let line = self.line(item.span().start);
                    all.push(read(self, table, line));
                }
                None => drop(self.wrong::<()>(key, item, &format!("a [[{key}]] section"))),
            }
        }
        all
    }

    fn string(&mut self, key: &str, value: &Value<'_>) -> Option<At<String>> {
        match value.get_ref().as_str() {
            Some(text) => Some(At {
                value: text.to_owned(),
                line: self.line(value.span().start),
            }),
            None if value.get_ref().is_integer() || value.get_ref().is_float() => {
                self.wrong(key, value, "text in quotes, with its unit")
            }
            None => self.wrong(key, value, "text in quotes"),
        }
    }

    fn boolean(&mut self, key: &str, value: &Value<'_>) -> Option<At<bool>> {
        match value.get_ref().as_bool() {
            Some(truth) => Some(At {
                value: truth,
                line: self.line(value.span().start),
            }),
            None => self.wrong(key, value, "true or false"),
        }
    }

    fn integer<T: TryFrom<u64>>(&mut self, key: &str, value: &Value<'_>) -> Option<At<T>> {
        let number = value.get_ref().as_integer();
        let number = number.and_then(|number| u64::from_str_radix(number.as_str(), number.radix()).ok());
        match number.and_then(|number| T::try_from(number).ok()) {
            Some(number) => Some(At {
                value: number,
                line: self.line(value.span().start),
            }),
            None => self.wrong(key, value, "a whole number, not negative and not huge"),
        }
    }

    fn strings(&mut self, key: &str, value: &Value<'_>) -> Vec<String> {
        let texts = value.get_ref().as_array().map(|array| {
            let texts = array
                .iter()
                .map(|text| text.get_ref().as_str().map(str::to_owned));
            texts.collect::<Option<Vec<_>>>()
        });
        texts.flatten().unwrap_or_else(|| {
            self.wrong::<()>(key, value, "a list of texts in quotes");
            Vec::new()
        })
    }

    fn pair(&mut self, key: &str, value: &Value<'_>) -> Option<At<[String; 2]>> {
        let names: Vec<String> = value.get_ref().as_array().map_or_else(Vec::new, |array| {
            array
                .iter()
                .filter_map(|name| name.get_ref().as_str().map(str::to_owned))
                .collect()
        });
        match <[String; 2]>::try_from(names) {
            Ok(pair) => Some(At {
                value: pair,
                line: self.line(value.span().start),
            }),
            Err(_) => self.wrong(key, value, "the names of two sites, [\"rennes\", \"nancy\"]"),
        }
    }

    fn wrong<T>(&mut self, key: &str, value: &Value<'_>, wanted: &str) -> Option<T> {
        let line = self.line(value.span().start);
        let found = value.get_ref().type_str();
        self.mistakes
            .add(Some(line), key, format!("is of type {found}; must be {wanted}"));
        None
    }

    fn unknown(&mut self, key: &Spanned<std::borrow::Cow<'_, str>>, section: &str, known: &str) {
        let line = self.line(key.span().start);
        let name = format!("{section}{}", key.get_ref());
        self.mistakes.add(
            Some(line),
            &name,
            format!("is not a known key; known are {known}"),
        );
    }

    fn line(&self, offset: usize) -> usize {
        self.text
            .bytes()
            .take(offset)
            .filter(|byte| *byte == b'\n')
            .count()
            + 1
    }
}

pub(super) const FIREWALL_KINDS: &str =
    "\"open\", \"outbound-only\", \"nat\", \"nat-symmetric\" or { ports = \"7000-7100,8000\" }";
