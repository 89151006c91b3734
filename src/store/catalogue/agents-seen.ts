import type { Kysely, Selectable } from 'kysely'
import type { Purpose } from '../../classify/known/software.ts'
import { purposesIn } from '../../classify/known/software-document.ts'
import type { Sighting } from '../../plane/sighting.ts'
import { parts } from '../engine/bulk.ts'
import type { Queries } from '../engine/database.ts'
import type { SoftwareTable } from '../engine/tables/catalogue.ts'
import type { Tables } from '../engine/tables.ts'
import { VersionTally } from './version-tally.ts'

interface AgentsAdded {
  /** Agents with a row of their own. All others are counted together. */
  readonly kept: ReadonlySet<string>
  /** The first sighting of each agent that is new on this installation. */
  readonly firsts: readonly Sighting[]
}

export interface NamedAgent extends Pick<Selectable<SoftwareTable>, 'name' | 'kind' | 'category'> {
  readonly purposes: readonly Purpose[]
}

export type VersionOf = (sighting: Sighting) => string | null

/** The agents on live traffic. */
export class AgentsSeenStore {
  readonly #db: Kysely<Tables>
  readonly #rowsMax: number

  constructor(db: Kysely<Tables>, rowsMax = ROWS_MAX) {
    this.#db = db
    this.#rowsMax = rowsMax
  }

  /** `versionOf`: the version that the client claims for its agent. */
  async add(
    sightings: readonly Sighting[],
    queries: Queries,
    versionOf: VersionOf = () => null,
  ): Promise<AgentsAdded> {
    const seen = agentsIn(sightings, versionOf)
    const known = await this.#joinKnown(seen, queries)
    const unknown = [...seen.keys()].filter((id) => !known.has(id))
    const room = unknown.length === 0 ? 0 : this.#rowsMax - (await countIn(queries))
    const added = unknown.slice(0, Math.max(0, room))
    const kept = new Set([...known, ...added])
    const rows = [...kept].map((id) => {
      const { row, versions } = seen.get(id)!
      return { software_id: id, ...row, versions: versions.text }
    })
    for (const part of parts(rows)) {
      await queries
        .insertInto('agents_seen')
        .values(part)
        .onConflict((conflict) =>
          conflict.column('software_id').doUpdateSet(({ ref }) => ({
            first_seen_ms: ref('excluded.first_seen_ms'),
            last_seen_ms: ref('excluded.last_seen_ms'),
            requests: ref('excluded.requests'),
            versions: ref('excluded.versions'),
          })),
        )
        .execute()
    }
    return { kept, firsts: added.map((id) => seen.get(id)!.first) }
  }

  /** The number of known agents, seen or not. */
  async total(): Promise<number> {
    const { rows } = await this.#db
      .selectFrom('software')
      .select(({ fn }) => fn.countAll<number>().as('rows'))
      .where('kind', '=', 'agent')
      .executeTakeFirstOrThrow()
    return Number(rows)
  }

  /** The names of the known agents among these ids. */
  async names(ids: readonly string[], queries: Queries = this.#db): Promise<ReadonlyMap<string, NamedAgent>> {
    if (ids.length === 0) return new Map()
    const rows = await queries
      .selectFrom('software')
      .select(['id', 'name', 'kind', 'category', 'document'])
      .where('id', 'in', ids)
      .execute()
    return new Map(
      rows.map(({ id, document, ...named }) => [id, { ...named, purposes: purposesIn(document) }]),
    )
  }

  /** The number of agents first seen since then. */
  async newSince(sinceMs: number): Promise<number> {
    return countIn(this.#db, sinceMs)
  }

  async rows(): Promise<number> {
    return countIn(this.#db)
  }

  async #joinKnown(seen: ReadonlyMap<string, AgentTally>, queries: Queries): Promise<ReadonlySet<string>> {
    const known = new Set<string>()
    for (const part of parts([...seen.keys()])) {
      const rows = await queries
        .selectFrom('agents_seen')
        .selectAll()
        .where('software_id', 'in', part)
        .execute()
      for (const { software_id: id, first_seen_ms, last_seen_ms, requests, versions } of rows) {
        const { row, versions: said } = seen.get(id)!
        said.join(VersionTally.parse(versions))
        row.requests += requests
        row.first_seen_ms = Math.min(row.first_seen_ms, first_seen_ms)
        row.last_seen_ms = Math.max(row.last_seen_ms, last_seen_ms)
        known.add(id)
      }
    }
    return known
  }
}

interface AgentTally {
  first: Sighting
  readonly row: { first_seen_ms: number; last_seen_ms: number; requests: number }
  readonly versions: VersionTally
}

function agentsIn(sightings: readonly Sighting[], versionOf: VersionOf): ReadonlyMap<string, AgentTally> {
  const seen = new Map<string, AgentTally>()
  for (const sighting of sightings) {
    const { agent, verdict, seenAtMs } = sighting
    if (agent === null || verdict !== 'agent') continue
    const known = seen.get(agent)
    const versions = known?.versions ?? new VersionTally()
    const version = versionOf(sighting)
    if (version !== null) versions.add(version, 1, seenAtMs)
    if (known === undefined) {
      const row = { first_seen_ms: seenAtMs, last_seen_ms: seenAtMs, requests: 1 }
      seen.set(agent, { first: sighting, row, versions })
      continue
    }
    if (seenAtMs < known.first.seenAtMs) known.first = sighting
    known.row.requests++
    known.row.first_seen_ms = Math.min(known.row.first_seen_ms, seenAtMs)
    known.row.last_seen_ms = Math.max(known.row.last_seen_ms, seenAtMs)
  }
  return seen
}

async function countIn(queries: Queries, sinceMs = 0): Promise<number> {
  const { rows } = await queries
    .selectFrom('agents_seen')
    .select(({ fn }) => fn.countAll<number>().as('rows'))
    .where('first_seen_ms', '>=', sinceMs)
    .executeTakeFirstOrThrow()
  return Number(rows)
}

/** Several times as many as there are named agents. */
const ROWS_MAX = 2_000
