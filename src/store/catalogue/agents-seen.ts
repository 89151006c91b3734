import type { Kysely, Selectable } from 'kysely'
import type { Purpose } from '../../classify/known/software.ts'
import { purposesIn } from '../../classify/known/software-document.ts'
import { OTHER, UNNAMED } from '../../plane/counts/buckets.ts'
import type { RollupTally } from '../../plane/counts/rollup-tally.ts'
import type { Sighting } from '../../plane/sighting.ts'
import { insertRows, isOneOf } from '../engine/arrays.ts'
import type { Queries } from '../engine/database.ts'
import type { SoftwareTable } from '../engine/tables/catalogue.ts'
import type { Tables } from '../engine/tables.ts'
import { VersionTally } from './version-tally.ts'

interface AgentsAdded {
  /** Agents, tools and browsers that are counted by name. All other agents are counted together. */
  readonly named: ReadonlySet<string>
  /** The first sighting of each agent that is new on this installation. */
  readonly firsts: readonly Sighting[]
}

export interface NamedAgent extends Pick<Selectable<SoftwareTable>, 'name' | 'kind' | 'category'> {
  readonly purposes: readonly Purpose[]
}

export type VersionOf = (sighting: Sighting) => string | null

/** The agents, tools and browsers on live traffic. */
export class AgentsSeenStore {
  readonly #db: Kysely<Tables>
  readonly #rowsMax: number

  constructor(db: Kysely<Tables>, rowsMax = ROWS_MAX) {
    this.#db = db
    this.#rowsMax = rowsMax
  }

  /**
   * `tally`: all requests, including those without a Sighting. Software gets a row with its first Sighting.
   * `versionOf`: the version that the client claims for its agent.
   */
  async add(
    sightings: readonly Sighting[],
    tally: RollupTally,
    queries: Queries,
    versionOf: VersionOf = () => null,
  ): Promise<AgentsAdded> {
    const seen = softwareIn(sightings, agentOf, versionOf)
    const others = softwareIn(sightings, otherOf, () => null)
    countRequests(tally, seen, others)
    for (const id of await toolsAmong([...others.keys()], queries))
      if (!seen.has(id)) seen.set(id, others.get(id)!)
    const known = await this.#joinKnown(seen, queries)
    const unknown = [...seen.keys()].filter((id) => !known.has(id))
    const room = unknown.length === 0 ? 0 : this.#rowsMax - (await countIn(queries))
    const fitting = unknown.slice(0, Math.max(0, room))
    const added = fitting.filter((id) => seen.get(id)!.first !== null)
    const rows = [...known, ...added].map((id) => {
      const { row, versions } = seen.get(id)!
      return { software_id: id, ...row, versions: versions.text }
    })
    await insertRows('agents_seen', rows, COLUMNS, REPLACED, queries)
    const firsts = added.map((id) => seen.get(id)!.first!)
    return {
      named: new Set([...known, ...fitting]),
      firsts: firsts.filter((first) => agentOf(first) !== null),
    }
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

  /** The number of agents first seen since then, without tools and browsers. */
  async newSince(sinceMs: number): Promise<number> {
    const { rows } = await this.#db
      .selectFrom('agents_seen')
      .leftJoin('software', 'software.id', 'agents_seen.software_id')
      .select(({ fn }) => fn.countAll<number>().as('rows'))
      .where('agents_seen.first_seen_ms', '>=', sinceMs)
      // An agent may have left the catalogue since.
      .where(({ eb, or }) => or([eb('software.kind', 'is', null), eb('software.kind', '=', 'agent')]))
      .executeTakeFirstOrThrow()
    return Number(rows)
  }

  async rows(): Promise<number> {
    return countIn(this.#db)
  }

  async #joinKnown(seen: ReadonlyMap<string, AgentTally>, queries: Queries): Promise<ReadonlySet<string>> {
    const known = new Set<string>()
    const rows = await queries
      .selectFrom('agents_seen')
      .selectAll()
      .where(isOneOf('software_id', [...seen.keys()], queries))
      .execute()
    for (const { software_id: id, first_seen_ms, last_seen_ms, requests, versions } of rows) {
      const { first, row, versions: said } = seen.get(id)!
      said.join(VersionTally.parse(versions))
      row.requests += requests
      // Counts know only the minute.
      row.first_seen_ms = first === null ? first_seen_ms : Math.min(row.first_seen_ms, first_seen_ms)
      row.last_seen_ms = Math.max(row.last_seen_ms, last_seen_ms)
      known.add(id)
    }
    return known
  }
}

interface AgentTally {
  /** `null`: it was only counted. */
  first: Sighting | null
  readonly row: { first_seen_ms: number; last_seen_ms: number; requests: number }
  readonly versions: VersionTally
}

function softwareIn(
  sightings: readonly Sighting[],
  idOf: (sighting: Sighting) => string | null,
  versionOf: VersionOf,
): Map<string, AgentTally> {
  const seen = new Map<string, AgentTally>()
  for (const sighting of sightings) {
    const { seenAtMs } = sighting
    const id = idOf(sighting)
    if (id === null) continue
    const known = seen.get(id)
    const versions = known?.versions ?? new VersionTally()
    const version = versionOf(sighting)
    if (version !== null) versions.add(version, 1, seenAtMs)
    if (known === undefined) {
      const row = { first_seen_ms: seenAtMs, last_seen_ms: seenAtMs, requests: 0 }
      seen.set(id, { first: sighting, row, versions })
      continue
    }
    if (seenAtMs < known.first!.seenAtMs) known.first = sighting
    known.row.first_seen_ms = Math.min(known.row.first_seen_ms, seenAtMs)
    known.row.last_seen_ms = Math.max(known.row.last_seen_ms, seenAtMs)
  }
  return seen
}

/** Adds the counted requests of software with and without a Sighting. */
function countRequests(
  tally: RollupTally,
  agents: Map<string, AgentTally>,
  others: Map<string, AgentTally>,
): void {
  for (const { atMs, buckets } of tally.minutes()) {
    for (const [counted, seen] of [[buckets.agent, agents] as const, [buckets.tool, others] as const]) {
      for (const [id, { requests }] of counted) {
        if (id === UNNAMED || id === OTHER) continue
        const row = { first_seen_ms: atMs, last_seen_ms: atMs, requests: 0 }
        const known = seen.get(id) ?? { first: null, row, versions: new VersionTally() }
        seen.set(id, known)
        known.row.requests += requests
        known.row.last_seen_ms = Math.max(known.row.last_seen_ms, atMs)
      }
    }
  }
}

function agentOf({ verdict, agent }: Sighting): string | null {
  return verdict === 'agent' ? agent : null
}

function otherOf(sighting: Sighting): string | null {
  return agentOf(sighting) === null ? sighting.software : null
}

/** The tools and browsers of the catalogue. A request without an agent never counts for an agent. */
async function toolsAmong(ids: readonly string[], queries: Queries): Promise<readonly string[]> {
  if (ids.length === 0) return []
  const rows = await queries
    .selectFrom('software')
    .select('id')
    .where(isOneOf('id', ids, queries))
    .where('kind', '<>', 'agent')
    .execute()
  return rows.map(({ id }) => id)
}

async function countIn(queries: Queries): Promise<number> {
  const { rows } = await queries
    .selectFrom('agents_seen')
    .select(({ fn }) => fn.countAll<number>().as('rows'))
    .executeTakeFirstOrThrow()
  return Number(rows)
}

const COLUMNS = {
  ...({ software_id: 'text', first_seen_ms: 'bigint', last_seen_ms: 'bigint' } as const),
  ...({ requests: 'bigint', versions: 'text' } as const),
}
const REPLACED = `on conflict (software_id) do update set first_seen_ms = excluded.first_seen_ms,
  last_seen_ms = excluded.last_seen_ms, requests = excluded.requests, versions = excluded.versions`
/** Twice as many as the catalogue names. */
const ROWS_MAX = 4_000
