import { sql } from 'kysely'
import type { Migration } from '../migration.ts'
import { catalogue } from './0001-schema/catalogue.ts'
import { events } from './0001-schema/events.ts'
import { people } from './0001-schema/people.ts'
import { traffic } from './0001-schema/traffic.ts'
import { work } from './0001-schema/work.ts'

/** All tables of the first release, by the room of src/store that uses them. */
export const schema: Migration = async (db, types) => {
  for (const room of [catalogue, traffic, events, people, work])
    for (const statement of room(types).trim().split(/;\n*/).slice(0, -1))
      await sql.raw(statement).execute(db)
}
