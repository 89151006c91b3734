import type { Tables } from '../engine/tables.ts'
import { EVENTS_DATA } from './event-data.ts'
import { PEOPLE_DATA } from './people-data.ts'
import type { TableData } from './table-data.ts'
import { SIGHTINGS_DATA, THREATS_DATA } from './traffic-data.ts'
import { WORK_DATA } from './work-data.ts'

/** Every table of the database. A test holds it against the columns of both databases. */
export const DATA_MAP: Readonly<Record<keyof Tables, TableData>> = {
  ...SIGHTINGS_DATA,
  ...THREATS_DATA,
  ...EVENTS_DATA,
  ...PEOPLE_DATA,
  ...WORK_DATA,
}

/** Data of persons outside of the databases. */
interface OtherPlace {
  readonly place: string
  readonly holds: string
  readonly kept: string
}

/** None of these is reached by `gatehouse erase`. */
export const OTHER_PLACES: readonly OtherPlace[] = [
  { place: '`sinks.file`, `sinks.syslog`, webhooks', holds: 'events', kept: 'by the receiver' },
  {
    place: '`sinks.parquet`',
    holds: 'requests',
    kept: '`retention.parquet`',
  },
  { place: '`sightings.file`', holds: 'requests', kept: '`sightings.max_size`, twice' },
  {
    place: 'the memory of proxies, the spool and NATS',
    holds: 'requests on their way',
    kept: 'seconds, and longer while a manager is unavailable',
  },
  { place: 'the log, with `proxy.access_log`', holds: 'requests', kept: 'by the system that takes the log' },
  { place: '`tracing.endpoint`', holds: 'requests', kept: 'by the receiver' },
  { place: 'backups of the database', holds: 'all of the above tables', kept: 'by you' },
]
