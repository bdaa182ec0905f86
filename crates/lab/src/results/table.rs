//! The results table: one table in long format, with a row for each flow, sample and so on. The column `kind` is the
//! kind of row. Columns that do not apply to a row are null.

use crate::spec::ValidSpec;
use crate::spec::choice::SchemeChoice;
use crate::spec::swept::AxisUnit;
use arrow_array::builder::{BooleanBuilder, Float64Builder, StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use serde::Serialize;
use serde_json::Value;
use std::io::Write;
use std::sync::Arc;

/// A column of the results table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TableColumn {
    /// Name, unit included.
    pub name: &'static str,
    /// Description in the documentation.
    pub about: &'static str,
}

/// Declares the columns of a table: the type of its rows, the list of columns, and their Arrow builders.
macro_rules! columns {
    ($($(#[doc = $about:literal])+ $name:ident: $type:ident,)*) => {
        /// A row of the table; `None` is stored as null.
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct ResultRow<'a> {
            $($(#[doc = $about])+ pub $name: columns!(@option $type 'a),)*
        }

        /// Columns that every table has. In results they are followed by columns for the swept keys.
                #[allow(dead_code, reason = "documentation alone may want them")]
        pub const COLUMNS: &[TableColumn] = &[$(TableColumn { name: stringify!($name), about: concat!($($about),+) }),*];

        #[derive(Debug, Default)]
        struct Builders { $($name: columns!(@builder $type),)* }

        impl Builders {
            fn push(&mut self, row: &ResultRow) {
                $(self.$name.append_option(row.$name);)*
            }

            fn finish(&mut self) -> Vec<ArrayRef> {
                vec![$(Arc::new(self.$name.finish()) as ArrayRef),*]
            }
        }

        fn fields() -> Vec<Field> {
            vec![$(Field::new(stringify!($name), columns!(@type $type), true)),*]
        }
    };
    (@option text $a:lifetime) => { Option<&$a str> };
    (@option whole $a:lifetime) => { Option<u64> };
    (@option number $a:lifetime) => { Option<f64> };
    (@option flag $a:lifetime) => { Option<bool> };
    (@builder text) => { StringBuilder };
    (@builder whole) => { UInt64Builder };
    (@builder number) => { Float64Builder };
    (@builder flag) => { BooleanBuilder };
    (@type text) => { DataType::Utf8 };
    (@type whole) => { DataType::UInt64 };
    (@type number) => { DataType::Float64 };
    (@type flag) => { DataType::Boolean };
}

pub(crate) use columns;

columns! {
    /// number of the trial
    trial: whole,
    /// label of the scheme; in rows of flows, of the flow's scheme where workloads name schemes
    scheme: text,
    /// seed of the run
    seed: whole,
    /// offered load: bytes on the wire, headers included, over the capacity of the hosts' links
    load: number,
    /// kind of row: flow, rate, pace, queue, link, wait, convergence, summary, job, weight, note
    kind: text,
    /// time of the sample or of the change of the flows; in rows of kind summary, the end of the run
    time_ns: whole,
    /// number of the flow, in the order in which they were planned
    flow: whole,
    /// name of the flow, if the spec gives one; in rows of kind job, the job's name
    flow_id: text,
    /// name of the source node
    src: text,
    /// name of the destination node
    dst: text,
    /// class of the flow: the name of its workload in the spec; in rows of kind job, of the job's
    class: text,
    /// id of the link
    link: text,
    /// ids of the links of the flow's path at its start, separated by spaces; " | " separates the paths of subflows
    path: text,
    /// payload of the flow, or of all flows of the job
    size_bytes: whole,
    /// start of the flow or of the job
    start_ns: whole,
    /// time at which the spec stopped the flow
    stop_ns: whole,
    /// weight of the flow; in rows of kind weight, the weight from time_ns on, 0 after the flow's end; in rows of kind job,
    /// the budget
    weight: number,
    /// flow completion time: from the start to the arrival of the last byte; null if the flow did not complete; of a job,
    /// to the end of its last flow or task
    fct_ns: whole,
    /// FCT of the same flow alone on the idle network; of a job, the duration of its critical path at line rate, or the time
    /// that the busiest host's link takes for all of its flows if that is longer
    ideal_fct_ns: whole,
    /// fct_ns over ideal_fct_ns
    slowdown: number,
    /// whether the row counts: the flow started, or the sample of a queue or the note was taken, after the warm-up
    measured: flag,
    /// distinct payload bytes that arrived
    received_bytes: whole,
    /// payload bytes of duplicates that arrived
    duplicate_bytes: whole,
    /// retransmitted data packets of the flow; in rows of kind summary, of all flows between warm-up and duration
    retransmissions: whole,
    /// dropped or lost data packets of the flow; in rows of kind summary, of all flows between warm-up and duration
    drops: whole,
    /// control messages of the flow that were dropped or lost
    ctl_drops: whole,
    /// rate received on the wire since the last sample, headers included
    rate_bps: number,
    /// rate on the wire assigned to the source; in rows of kind flow, 0 for a flow that a scheme of the user's held for
    /// ever, and null for others
    assigned_bps: number,
    /// number of the subflow within its flow, from 0
    subflow: whole,
    /// pacing rate of the subflow, on the wire; null where the source sets none
    pace_bps: number,
    /// congestion window, payload bytes; null where the source sets none
    window_bytes: whole,
    /// payload bytes in flight
    in_flight_bytes: whole,
    /// queue length, bytes
    queued_bytes: whole,
    /// queue length, packets
    queued_packets: whole,
    /// maximum queue length, bytes, between warm-up and duration
    peak_queued_bytes: whole,
    /// data bytes sent over the link between warm-up and duration, headers included; in rows of kind summary, over all
    /// links; in rows of kind queue, since the last sample
    data_bytes: whole,
    /// bytes of ACKs sent, between warm-up and duration
    ack_bytes: whole,
    /// bytes of control packets sent, between warm-up and duration
    ctl_bytes: whole,
    /// packets dropped at full queues, between warm-up and duration
    dropped_packets: whole,
    /// bytes dropped at full queues, between warm-up and duration
    dropped_bytes: whole,
    /// packets dropped at full queues over the whole run, warm-up and drain included; only of a summary
    dropped_in_run: whole,
    /// packets lost to injected faults, between warm-up and duration
    lost_packets: whole,
    /// times that a class of packets was paused before the link, between warm-up and duration; of a summary, over all links
    pauses: whole,
    /// duration of pauses of classes of packets before the link, between warm-up and duration; of a summary, over all links
    paused_ns: whole,
    /// start of a deadlock: a cycle of paused links that the link is part of; null if there is none
    deadlock_ns: whole,
    /// data bits over capacity, between warm-up and duration; of a summary, over the links into the hosts together
    utilization: number,
    /// upper edge of a bin of the data packets' queueing delay over their whole path
    wait_ns: whole,
    /// data packets in the bin, of those that arrived between warm-up and duration
    packets: whole,
    /// number of the row's convergence criterion in the spec, from 0
    criterion: whole,
    /// whether the rates converged before the next change of the flows
    converged: flag,
    /// convergence time after the change of the flows, without the lag of the filter
    convergence_ns: whole,
    /// number of flows: that run after the change (kind convergence), of the workload (summary), of the job (job)
    flows: whole,
    /// number of flows that completed
    completed: whole,
    /// fraction of the flows whose rates are within the criterion's tolerance at the last sample
    within_share: number,
    /// smallest tolerance that the criterion's share of the flows meets at the last sample: a relative error of rates
    end_error: number,
    /// whether the criterion is met at the last sample
    near_at_end: flag,
    /// number of events handled
    events: whole,
    /// number of packet-hops: packets that left a queue onto a link
    packet_hops: whole,
    /// name of a note of a scheme of the user's
    name: text,
    /// value of the note
    value: number,
}

/// Values of the column `kind`.
pub const KINDS: &[&str] =
    &["flow", "rate", "pace", "queue", "link", "wait", "convergence", "summary", "job", "weight", "note"];

/// Rows that are encoded at a time.
const BATCH: usize = 1 << 14;

/// Function from the axis values and the scheme of a trial to its value in a column.
type ValueOf = dyn Fn(&[Value], &SchemeChoice) -> AxisValue;

/// A column for a swept key or a swept parameter.
struct SweptColumn {
    name: String,
    is_number: bool,
    /// Value of the column in a trial.
    value: Box<ValueOf>,
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

/// Columns for the swept keys of `spec`. Each key has a column with its values as written, except the load, which has a
/// column already. If the values have a unit, a second column has their numbers. Swept parameters of schemes follow, as
/// numbers where possible.
fn swept_columns(spec: &ValidSpec) -> Vec<SweptColumn> {
    let mut columns: Vec<SweptColumn> = Vec::new();
    for (i, axis) in spec.axes.iter().enumerate().filter(|(_, a)| a.key != "workload.load") {
        let is_number = axis.values.iter().all(Value::is_number);
        let value = move |values: &[Value], _: &SchemeChoice| match &values[i] {
            v if is_number => AxisValue::Number(v.as_f64()),
            v => AxisValue::Text(Some(text_of(v))),
        };
        columns.push(SweptColumn { name: axis.key.clone(), is_number, value: Box::new(value) });
        let swept = axis.read();
        if let Some(unit) = swept.first().and_then(|s| s.unit).filter(|unit| *unit != AxisUnit::One) {
            let value = move |values: &[Value], _: &SchemeChoice| {
                AxisValue::Number(swept.iter().find(|s| s.value == values[i]).and_then(|s| s.number))
            };
            columns.push(SweptColumn { name: unit.column(&axis.key), is_number: true, value: Box::new(value) });
        }
    }
    for (key, swept) in spec.schemes.iter().flat_map(|scheme| &scheme.swept) {
        let name = swept.unit.map_or_else(|| key.clone(), |unit| unit.column(key));
        if columns.iter().any(|c| c.name == name) {
            continue;
        }
        let (key, unit) = (key.clone(), swept.unit);
        let value = move |_: &[Value], scheme: &SchemeChoice| {
            let own = scheme.swept.get(&key).filter(|s| s.unit == unit);
            match unit {
                Some(_) => AxisValue::Number(own.and_then(|s| s.number)),
                None => AxisValue::Text(own.map(|s| text_of(&s.value))),
            }
        };
        columns.push(SweptColumn { name, is_number: swept.unit.is_some(), value: Box::new(value) });
    }
    columns
}

fn schema(swept: &[SweptColumn]) -> SchemaRef {
    let mut fields = fields();
    for column in swept {
        fields.push(Field::new(&column.name, if column.is_number { DataType::Float64 } else { DataType::Utf8 }, true));
    }
    Arc::new(Schema::new(fields))
}

/// Writer properties without times and machine-dependent statistics, so that equal rows produce equal bytes.
pub(crate) fn properties(metadata: Vec<KeyValue>) -> WriterProperties {
    WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(concat!("subak ", env!("CARGO_PKG_VERSION")).to_string())
        .set_key_value_metadata(Some(metadata))
        .build()
}

fn repeated(text: &str, rows: usize) -> ArrayRef {
    Arc::new(arrow_array::StringArray::from_iter_values(std::iter::repeat_n(text, rows)))
}

/// Writes the rows of one trial.
pub(crate) struct TableWriter<W: Write + Send> {
    writer: ArrowWriter<W>,
    schema: SchemaRef,
    builders: Builders,
    axes: Vec<AxisValue>,
    rows: usize,
}

enum AxisValue {
    Number(Option<f64>),
    Text(Option<String>),
}

impl<W: Write + Send> TableWriter<W> {
    /// Starts the table of a trial of `spec` with these axis values and this scheme.
    pub fn new(
        out: W,
        spec: &ValidSpec,
        axis_values: &[Value],
        scheme: &SchemeChoice,
        metadata: Vec<KeyValue>,
    ) -> Result<Self> {
        let columns = swept_columns(spec);
        let schema = schema(&columns);
        Ok(TableWriter {
            writer: ArrowWriter::try_new(out, Arc::clone(&schema), Some(properties(metadata)))?,
            schema,
            builders: Builders::default(),
            axes: columns.iter().map(|column| (column.value)(axis_values, scheme)).collect(),
            rows: 0,
        })
    }

    /// Appends a row.
    pub fn push(&mut self, row: &ResultRow) -> Result<()> {
        self.builders.push(row);
        self.rows += 1;
        if self.rows == BATCH { self.flush() } else { Ok(()) }
    }

    /// Appends the rows of another table, with `trial` as trial number and `scheme` as label of the scheme.
    pub fn push_batch(&mut self, batch: &RecordBatch, trial: u64, scheme: &str) -> Result<()> {
        let rows = batch.num_rows();
        let lacking = |name| ParquetError::General(format!("the table has no column {name}"));
        let column = |about: &TableColumn| match about.name {
            "trial" => Ok(Arc::new(arrow_array::UInt64Array::from(vec![trial; rows])) as ArrayRef),
            "scheme" => Ok(repeated(scheme, rows)),
            name => batch.column_by_name(name).cloned().ok_or_else(|| lacking(name)),
        };
        let arrays = COLUMNS.iter().map(column).collect::<Result<Vec<_>>>()?;
        self.write(arrays, rows)
    }

    fn flush(&mut self) -> Result<()> {
        let arrays = self.builders.finish();
        let rows = std::mem::take(&mut self.rows);
        self.write(arrays, rows)
    }

    fn write(&mut self, mut arrays: Vec<ArrayRef>, rows: usize) -> Result<()> {
        arrays.extend(self.axes.iter().map(|axis| match axis {
            AxisValue::Number(x) => Arc::new(arrow_array::Float64Array::from(vec![*x; rows])) as ArrayRef,
            AxisValue::Text(s) => Arc::new(arrow_array::StringArray::from(vec![s.as_deref(); rows])),
        }));
        self.writer.write(&RecordBatch::try_new(Arc::clone(&self.schema), arrays)?)
    }

    /// Writes the remaining rows and the footer, with `metadata` added; returns the output.
    pub fn close(mut self, metadata: impl IntoIterator<Item = KeyValue>) -> Result<W> {
        self.flush()?;
        metadata.into_iter().for_each(|pair| self.writer.append_key_value_metadata(pair));
        self.writer.into_inner()
    }
}
