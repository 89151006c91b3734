import assert from 'node:assert/strict'
import protobuf from 'protobufjs'

/** Logs of OTLP, from https://github.com/open-telemetry/opentelemetry-proto (logs/v1, common/v1 and resource/v1). */
const SCHEMA = `syntax = "proto3";
message LogsData { repeated ResourceLogs resource_logs = 1; }
message ResourceLogs { Resource resource = 1; repeated ScopeLogs scope_logs = 2; string schema_url = 3; }
message ScopeLogs { InstrumentationScope scope = 1; repeated LogRecord log_records = 2; string schema_url = 3; }
message LogRecord {
  fixed64 time_unix_nano = 1;
  fixed64 observed_time_unix_nano = 11;
  int32 severity_number = 2;
  string severity_text = 3;
  AnyValue body = 5;
  repeated KeyValue attributes = 6;
  uint32 dropped_attributes_count = 7;
  fixed32 flags = 8;
  bytes trace_id = 9;
  bytes span_id = 10;
  string event_name = 12;
}
message Resource { repeated KeyValue attributes = 1; uint32 dropped_attributes_count = 2; }
message InstrumentationScope {
  string name = 1;
  string version = 2;
  repeated KeyValue attributes = 3;
  uint32 dropped_attributes_count = 4;
}
message KeyValue { string key = 1; AnyValue value = 2; }
message ArrayValue { repeated AnyValue values = 1; }
message KeyValueList { repeated KeyValue values = 1; }
message AnyValue {
  oneof value {
    string string_value = 1;
    bool bool_value = 2;
    int64 int_value = 3;
    double double_value = 4;
    ArrayValue array_value = 5;
    KeyValueList kvlist_value = 6;
    bytes bytes_value = 7;
  }
}`

interface ReadRecord {
  readonly atMs: number
  readonly severity: string
  readonly eventName: string
  readonly service: unknown
  readonly body: unknown
  readonly attributes: Readonly<Record<string, unknown>>
}

/** The records of a message, as a parser of the schema reads them. Fails if the message has what the schema lacks. */
export function recordsIn(message: object): readonly ReadRecord[] {
  const bytes = LOGS.encode(LOGS.fromObject(message)).finish()
  const read = LOGS.toObject(LOGS.decode(bytes), { longs: String })
  assert.deepEqual(read, message)
  return (read as ReadMessage).resourceLogs.flatMap(({ resource, scopeLogs }) =>
    scopeLogs.flatMap(({ logRecords }) =>
      logRecords.map((each) => ({
        atMs: Number(BigInt(each.timeUnixNano) / 1_000_000n),
        severity: each.severityText,
        eventName: each.eventName,
        service: valuesOf(resource.attributes)['service.name'],
        body: readValue(each.body),
        attributes: valuesOf(each.attributes),
      })),
    ),
  )
}

interface ReadMessage {
  readonly resourceLogs: readonly {
    readonly resource: { readonly attributes: readonly KeyValue[] }
    readonly scopeLogs: readonly { readonly logRecords: readonly RecordAsRead[] }[]
  }[]
}

interface RecordAsRead {
  readonly timeUnixNano: string
  readonly severityText: string
  readonly eventName: string
  readonly body: AnyValue
  readonly attributes: readonly KeyValue[]
}

interface KeyValue {
  readonly key: string
  readonly value: AnyValue
}

interface AnyValue {
  readonly stringValue?: string
  readonly doubleValue?: number
  readonly arrayValue?: { readonly values: readonly AnyValue[] }
}

function valuesOf(attributes: readonly KeyValue[]): Readonly<Record<string, unknown>> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, readValue(value)]))
}

function readValue({ stringValue, doubleValue, arrayValue }: AnyValue): unknown {
  return stringValue ?? doubleValue ?? arrayValue?.values.map(readValue)
}

const LOGS = protobuf.parse(SCHEMA).root.lookupType('LogsData')
