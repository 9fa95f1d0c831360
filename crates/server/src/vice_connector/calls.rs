//! The methods of the contract, each a few lines between its arguments and the monitor.

use super::arguments::Arguments;
use super::connector::Connector;
use super::present::{self, Outcome};
use debug::vice::contract::{self, Method};
use debug::vice::{Arrival, Error, NewCheckpoint, Place, Ran, ResetKind};
use serde_json::{Map, Value, json};

/// What the answer to a step says when none of them, or one less, was executed.
const ARRIVED: &str = "a register was set before: this VICE spends the first step on arriving at the program counter and \
                       executes nothing there";

/// What the answer to a temporary checkpoint says.
const RESUMED: &str =
    "VICE resumes the machine when it makes a temporary checkpoint: it runs until that or another one is hit";

/// Calls the method.
pub(super) fn call(connector: &Connector, method: &Method, given: &Arguments<'_>) -> Result<Outcome, Error> {
    match method.name {
        "read_memory" => {
            let limit = given.timeout_ms()?;
            let place = place(given)?;
            let end = given.address("end")?;
            let memory = connector.monitor().read_memory(place, end, given.long("max_bytes"), limit)?;
            Ok(present::memory(place, &memory))
        }
        "capture_display" => {
            let monitor = connector.monitor();
            let (use_vic, on_old) = (given.bool("use_vic"), connector.allows_old_display());
            Ok(present::picture(&monitor.capture(use_vic, on_old, given.timeout_ms()?)?, monitor.version()))
        }
        _ => short(connector, method, given).map(Outcome::from),
    }
}

/// The methods whose results are short.
fn short(connector: &Connector, method: &Method, given: &Arguments<'_>) -> Result<Value, Error> {
    let monitor = connector.monitor();
    match method.name {
        "capabilities" => return Ok(capabilities(connector)),
        "status" => return Ok(status(connector)),
        _ => {}
    }
    let limit = given.timeout_ms()?;
    match method.name {
        "get_registers" => {
            let memspace = given.memspace()?;
            Ok(present::registers(memspace, &monitor.registers(given.texts("names"), memspace, limit)?))
        }
        "set_registers" => {
            let (names, values, memspace) = (given.texts("names"), given.longs("values"), given.memspace()?);
            if names.len() != values.len() {
                return Err(Error::Argument(format!("{} names and {} values", names.len(), values.len())));
            }
            let pairs: Vec<(String, i64)> = names.iter().cloned().zip(values.iter().copied()).collect();
            Ok(present::registers(memspace, &monitor.set_registers(&pairs, memspace, limit)?))
        }
        "list_banks" => {
            let banks = monitor.banks(limit)?;
            let shapes: Vec<Value> = banks.iter().map(|bank| json!({"id": bank.id, "name": bank.name})).collect();
            Ok(json!({"banks": shapes}))
        }
        "write_memory" => {
            let place = place(given)?;
            Ok(present::written(place, monitor.write_memory(place, given.bytes("data"), limit)?))
        }
        "list_checkpoints" => {
            let checkpoints = monitor.checkpoints(limit)?;
            Ok(json!({"checkpoints": checkpoints.iter().map(present::checkpoint).collect::<Vec<_>>()}))
        }
        "set_checkpoint" => set_checkpoint(connector, given, limit),
        "delete_checkpoint" => {
            let number = number(given)?;
            monitor.delete_checkpoint(number, limit)?;
            Ok(json!({"number": number, "deleted": true}))
        }
        "toggle_checkpoint" => {
            let (number, enabled) = (number(given)?, given.bool("enabled"));
            monitor.toggle_checkpoint(number, enabled, limit)?;
            Ok(json!({"number": number, "enabled": enabled}))
        }
        "set_condition" => {
            let (number, expression) = (number(given)?, given.text("expression"));
            monitor.set_condition(number, expression, limit)?;
            Ok(json!({"number": number, "expression": expression}))
        }
        "step" => Ok(stepped(&monitor.step(false, given.long("count"), limit)?, given.long("count"))),
        "next" => Ok(stepped(&monitor.step(true, given.long("count"), limit)?, given.long("count"))),
        "finish" => Ok(present::operation(&monitor.finish(limit)?)),
        "resume" => Ok(present::operation(&monitor.resume(limit)?)),
        "interrupt" => Ok(present::operation(&monitor.interrupt(limit)?)),
        "wait_for_stop" => {
            let after = given.long("after_sequence");
            let after = u64::try_from(after)
                .map_err(|_| Error::Argument(format!("after_sequence must be 0 or more, and is {after}")))?;
            Ok(json!({"event": present::event(&monitor.wait_for_stop(after, limit)?)}))
        }
        "reset" => {
            let wanted = given.text("kind");
            let kind = ResetKind::NAMED.into_iter().find(|(name, _)| *name == wanted).map(|(_, kind)| kind);
            let kind = kind.ok_or_else(|| Error::Argument("kind must be soft, hard, drive8 or drive9".to_owned()))?;
            monitor.reset(kind, limit)?;
            Ok(json!({"kind": wanted}))
        }
        "feed_keyboard" => {
            let text = given.bytes("text");
            monitor.feed_keyboard(text, limit)?;
            Ok(json!({"fed": text.len()}))
        }
        "save_snapshot" => {
            let path = given.text("path");
            monitor.save_snapshot(path, given.bool("save_roms"), given.bool("save_disks"), limit)?;
            Ok(json!({"path": path}))
        }
        "load_snapshot" => {
            let path = given.text("path");
            let pc = monitor.load_snapshot(path, limit)?;
            Ok(json!({"path": path, "pc": pc, "pc_display": present::display(pc)}))
        }
        other => Err(Error::Argument(format!("the method {other} is not served"))),
    }
}

fn number(given: &Arguments<'_>) -> Result<u32, Error> {
    given.number("number", u32::MAX)
}

fn place(given: &Arguments<'_>) -> Result<Place, Error> {
    Ok(Place {
        bank: given.number("bank_id", u32::from(u16::MAX))?,
        memspace: given.memspace()?,
        start: given.address("start")?,
        side_effects: given.bool("side_effects"),
    })
}

fn set_checkpoint(connector: &Connector, given: &Arguments<'_>, limit: u64) -> Result<Value, Error> {
    let new = NewCheckpoint {
        start: given.address("start")?,
        end: given.address("end")?,
        stops: given.bool("stop_on_hit"),
        enabled: given.bool("enabled"),
        operations: given.number("operations", 7)?,
        temporary: given.bool("temporary"),
        memspace: given.memspace()?,
    };
    let made = connector.monitor().set_checkpoint(&new, limit)?;
    let mut result = Map::from_iter([("checkpoint".to_owned(), present::checkpoint(&made.checkpoint))]);
    if made.resumed {
        result.insert("resumed".to_owned(), true.into());
        result.insert("note".to_owned(), RESUMED.into());
    }
    Ok(result.into())
}

fn stepped(ran: &Ran, count: i64) -> Value {
    let mut shape = present::operation(ran);
    if let (Arrival::OnlyArrived, Value::Object(shape)) = (ran.arrival, &mut shape) {
        shape.insert("executed".to_owned(), count.saturating_sub(1).into());
        shape.insert("note".to_owned(), ARRIVED.into());
    }
    shape
}

fn capabilities(connector: &Connector) -> Value {
    let limits = Map::from_iter(contract::LIMITS.map(|(name, value)| (name.to_owned(), value.into())));
    json!({
        "protocol": contract::PROTOCOL,
        "api_major": contract::API_MAJOR,
        "api_minor": contract::API_MINOR,
        "connector_name": contract::CONNECTOR_NAME,
        "connector_version": contract::CONNECTOR_VERSION,
        "implementation": contract::IMPLEMENTATION,
        "implementation_version": env!("CARGO_PKG_VERSION"),
        "instance_id": connector.instance(),
        "machine": contract::MACHINE,
        "vice_version": connector.monitor().version().to_string(),
        "binary_monitor_api": contract::BINARY_MONITOR_API,
        "capabilities": contract::CAPABILITIES,
        "method_namespace": contract::NAMESPACE,
        "surface_revision": contract::SURFACE_REVISION,
        "limits": limits,
        "extensions": contract::EXTENSIONS.iter().map(Method::full_name).collect::<Vec<_>>(),
    })
}

fn status(connector: &Connector) -> Value {
    let status = connector.monitor().status();
    let error = status.lost.as_ref().map(|error| json!({"code": error.code(), "message": error.to_string()}));
    json!({
        "instance_id": connector.instance(),
        "connection_state": connector.connection_state(&status),
        "execution_state": status.execution.name(),
        "connection_generation": 1,
        "command_sequence": status.commands,
        "event_sequence": status.sequence,
        "raw_sequence": status.sequence,
        "pc": status.pc,
        "terminal_error": error,
        "connector_version": contract::CONNECTOR_VERSION,
        "implementation": contract::IMPLEMENTATION,
        "implementation_version": env!("CARGO_PKG_VERSION"),
        "vice_version": connector.monitor().version().to_string(),
        "binary_monitor_api": contract::BINARY_MONITOR_API,
    })
}
