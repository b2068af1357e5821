//! The JSON schema of a profile in TOML, for editors, made from `keys`. It checks forms; only the reader
//! checks what must fit together, such as names of groups.

use crate::keys::{Key, Kind, MAX, MIN, ROOT};
use crate::{MAX_NAMES, MAX_RANKS, MAX_WORD_BYTES, MAX_WORDS};
use causeway_units::{Measure, SPEED, pattern};
use serde_json::{Map, Value, json};

/// The name of a site, group or network, by the rule of `causeway_wire::grid::is_site_name`.
const NAME: &str = "^(?!all$)[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$";
/// Ranks and ranges of them.
const RANKS: &str = r"^ *[0-9]+ *(- *[0-9]+ *)?(, *[0-9]+ *(- *[0-9]+ *)?)*$";

/// The schema, draft 2020-12, with a newline at its end.
pub fn schema() -> String {
    let mut whole = table(ROOT);
    if let Some(whole) = whole.as_object_mut() {
        let head = [
            ("$schema", "https://json-schema.org/draft/2020-12/schema"),
            ("title", "The profile of a job for Causeway"),
            (
                "description",
                "See docs/profile.md. 'causeway profile FILE' tells all mistakes.",
            ),
        ];
        whole.extend(head.map(|(key, value)| (key.to_owned(), value.into())));
        whole.insert("required".to_owned(), json!(["groups"]));
    }
    format!("{whole:#}\n")
}

fn table(keys: &[Key]) -> Value {
    let properties: Map<String, Value> = keys
        .iter()
        .map(|key| (key.name.to_owned(), property(key)))
        .collect();
    json!({ "type": "object", "additionalProperties": false, "properties": properties })
}

fn property(key: &Key) -> Value {
    let mut value = form(&key.kind);
    if let Some(value) = value.as_object_mut() {
        value.insert("description".to_owned(), key.says.into());
        if let Some(example) = example(key) {
            value.insert("examples".to_owned(), json!([example]));
        }
    }
    value
}

/// The example of a key; tables of tables have none.
fn example(key: &Key) -> Option<Value> {
    let table: toml::Table = toml::from_str(&format!("x = {}", key.example)).ok()?;
    serde_json::to_value(table.get("x")?).ok()
}

fn form(kind: &Kind) -> Value {
    let name = json!({ "type": "string", "pattern": NAME });
    match kind {
        Kind::Name | Kind::Reference => name,
        Kind::Words => {
            let word = json!({ "type": "string", "maxLength": MAX_WORD_BYTES });
            let list = json!({ "type": "array", "items": word, "minItems": 1, "maxItems": MAX_WORDS });
            json!({ "oneOf": [{ "type": "string", "minLength": 1 }, list] })
        }
        Kind::Count(most) => json!({ "type": "integer", "minimum": 1, "maximum": most }),
        Kind::Ranks => {
            let named = json!({ "type": "string", "pattern": RANKS });
            json!({ "oneOf": [form(&Kind::Count(MAX_RANKS)), named] })
        }
        Kind::Measure(measure) => quantity(measure),
        Kind::AtLeast(measure) => bounds(MIN, measure),
        Kind::AtMost(measure) => bounds(MAX, measure),
        Kind::Between => {
            let mut value = table(crate::keys::MIN_MAX);
            value["minProperties"] = 1.into();
            value
        }
        Kind::Names => {
            json!({ "type": "array", "items": name, "minItems": 1, "maxItems": MAX_NAMES, "uniqueItems": true })
        }
        Kind::References => named(&name, crate::MAX_GROUPS),
        Kind::Named(keys, most) => named(&table(keys), *most),
        Kind::List(keys, most) => {
            json!({ "type": "array", "items": table(keys), "minItems": 1, "maxItems": most })
        }
    }
}

/// An object whose keys are names that the user chooses.
fn named(value: &Value, most: usize) -> Value {
    json!({
        "type": "object",
        "propertyNames": { "pattern": NAME },
        "additionalProperties": value,
        "maxProperties": most,
    })
}

fn quantity(measure: &Measure) -> Value {
    if std::ptr::eq(measure, &raw const SPEED) {
        // The range is in thousandths.
        let (least, most) = (0.001, measure.range.end() / 1_000);
        json!({ "type": "number", "minimum": least, "maximum": most })
    } else {
        json!({ "type": "string", "pattern": pattern(measure) })
    }
}

/// An object with one bound, which is required.
fn bounds(keys: &[Key], measure: &Measure) -> Value {
    let mut value = table(keys);
    for key in keys {
        value["properties"][key.name] = quantity(measure);
    }
    let names: Vec<&str> = keys.iter().map(|key| key.name).collect();
    value["required"] = json!(names);
    value
}
