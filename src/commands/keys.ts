import { didYouMean } from '../did-you-mean.ts'
import { Fault } from '../fault.ts'
import { changed, COMMAND_LINE } from '../manage/audit.ts'
import { makeKey, type WantedKey } from '../manage/auth/make-key.ts'
import {
  ACCESS,
  type Access,
  PLANS,
  type Plan,
  planFor,
  SCOPES,
  type Scope,
} from '../manage/auth/principal.ts'
import { parseDurationMs } from '../policy/duration.ts'
import type { KeyRecord } from '../store/keys.ts'
import type { Store } from '../store/store.ts'
import { USAGE } from './arguments.ts'
import type { Action, Arguments, ExitCode, Group } from './command.ts'
import type { Io } from './io.ts'
import { STORE_OPTIONS, withStore } from './store-given.ts'
import { renderTable, visible } from './table.ts'

const JSON_OPTION = { name: 'json', description: 'Print JSON, for a program' }

const create: Action = {
  name: 'create',
  summary: 'Make an API key, and print it',
  description: [
    'The key is all that stands on stdout, so that it can be piped; what it may do is said on stderr. It is shown here ' +
      'only: what is kept of it is a hash.',
    'The gateway may be running, and knows the key at once. Where it has not run yet, its database is made: run this ' +
      'as the user that the gateway runs as.',
  ],
  operands: [],
  options: [
    { name: 'name', value: 'NAME', description: 'What it is for, in words; up to 100 characters' },
    {
      name: 'access',
      value: 'ACCESS',
      description: 'What it may do',
      choices: Object.keys(ACCESS),
    },
    {
      name: 'scopes',
      value: 'SCOPES',
      description: `In place of --access, with commas between them: ${SCOPES.join(', ')}`,
    },
    {
      name: 'plan',
      value: 'PLAN',
      description: 'How much it may ask for (default: standard; of administrators, unlimited)',
      choices: PLANS,
    },
    {
      name: 'expires',
      value: 'WHEN',
      description: 'When it ends, 30d or 2027-01-31T12:00:00Z (default: never)',
    },
    JSON_OPTION,
    ...STORE_OPTIONS,
  ],
  examples: [
    { command: 'keys create --name admin --access admin', description: 'The first key' },
    {
      command: 'keys create --name ci --access read --expires 90d --config /etc/gatehouse.yaml',
      description: 'One that ends by itself',
    },
  ],
  run: runCreate,
}

const list: Action = {
  name: 'list',
  summary: 'List the API keys that are not revoked',
  operands: [],
  options: [JSON_OPTION, ...STORE_OPTIONS],
  examples: [{ command: 'keys list', description: 'Newest first' }],
  run: runList,
}

const revoke: Action = {
  name: 'revoke',
  summary: 'Revoke an API key: within a second it opens nothing any more',
  operands: [{ name: 'ID', description: 'Its id, as "keys list" shows it: key_…' }],
  options: STORE_OPTIONS,
  examples: [{ command: 'keys revoke key_x7c1Jq0aT5b2Lw9k', description: 'For good' }],
  run: runRevoke,
}

export const keys: Group = {
  name: 'keys',
  summary: 'Make, list and revoke API keys',
  description: ['On the database of a gateway, whether it runs or not.'],
  subcommands: [create, list, revoke],
}

async function runCreate(given: Arguments, io: Io): Promise<ExitCode> {
  const nowMs = Date.now()
  const wanted = wantedKey(given, nowMs)
  const { key, record } = await withStore(given, io, true, (store) =>
    makeKey(store, wanted, COMMAND_LINE, nowMs),
  )
  const shown = shownKey(record)
  if (given.flag('json')) {
    io.stdout.write(`${JSON.stringify({ ...shown, key })}\n`)
    return 0
  }
  io.stdout.write(`${key}\n`)
  const end = shown.expires_at === null ? 'never expires' : `expires ${shown.expires_at}`
  const scopes = shown.scopes.join(', ')
  io.stderr.write(
    `${shown.id}: ${visible(shown.name)}: ${scopes}; plan ${shown.plan}; ${end}; shown here only\n`,
  )
  return 0
}

async function runList(given: Arguments, io: Io): Promise<ExitCode> {
  const all = (await withStore(given, io, false, allKeys)).map((record) => ({
    ...shownKey(record),
    last_used_at: timeOf(record.lastUsedAtMs),
  }))
  if (given.flag('json')) {
    io.stdout.write(`${JSON.stringify(all)}\n`)
    return 0
  }
  const columns = [
    { title: 'ID' },
    { title: 'NAME', flexible: true },
    { title: 'SCOPES', flexible: true },
    { title: 'PLAN' },
    { title: 'CREATED' },
    { title: 'EXPIRES' },
    { title: 'LAST USED' },
  ] as const
  const rows = all.map(({ id, name, scopes, plan, created_at, expires_at, last_used_at }) => {
    const times = [created_at, expires_at, last_used_at].map((time) => time?.slice(0, 16) ?? 'never')
    return [id, name, scopes.join(','), plan, ...times]
  })
  io.stdout.write(`${renderTable(columns, rows, io.columns).join('\n')}\n`)
  return 0
}

async function runRevoke(given: Arguments, io: Io): Promise<ExitCode> {
  const id = given.operands[0]!
  const { name } = await withStore(given, io, false, async (store) => {
    const found = await store.keys.byId(id)
    if (found?.revokedAtMs !== null) throw new Fault('KEY_UNKNOWN', `there is no key ${id}`)
    const change = { action: 'revokeKey', subject: id, detail: { name: found.name } }
    const nowMs = Date.now()
    await changed(store, COMMAND_LINE, change, nowMs, (queries) => store.keys.revoke(id, nowMs, queries))
    return found
  })
  io.stderr.write(`${id}: ${visible(name)}: revoked\n`)
  return 0
}

async function allKeys(store: Store): Promise<readonly KeyRecord[]> {
  const all: KeyRecord[] = []
  for (let page = 1; ; page++) {
    const { items } = await store.keys.list({ page, limit: PAGE })
    all.push(...items)
    if (items.length < PAGE) return all
  }
}

function wantedKey(given: Arguments, nowMs: number): WantedKey {
  const [access, listed] = [given.value('access'), given.value('scopes')]
  const name = given.value('name')
  if (name === null) throw new Fault(USAGE, '--name is missing')
  if (!NAME.test(name)) throw new Fault(USAGE, '--name takes 1 to 100 characters, no control characters')
  if ((access === null) === (listed === null)) throw new Fault(USAGE, 'give --access or --scopes')
  const scopes = access === null ? scopesIn(listed!) : ACCESS[access as Access]
  const plan = (given.value('plan') as Plan | null) ?? planFor(scopes)
  return { name, scopes, plan, expiresAtMs: expiryMs(given.value('expires'), nowMs) }
}

export function scopesIn(text: string): readonly Scope[] {
  const scopes = new Set<Scope>()
  for (const word of text.split(',').map((each) => each.trim())) {
    const scope = SCOPES.find((each) => each === word)
    if (scope === undefined)
      throw new Fault(USAGE, `--scopes takes ${SCOPES.join(', ')}, not "${word}"${didYouMean(word, SCOPES)}`)
    scopes.add(scope)
  }
  return [...scopes]
}

function expiryMs(text: string | null, nowMs: number): number | null {
  if (text === null) return null
  const durationMs = parseDurationMs(text)
  const atMs = durationMs !== null ? nowMs + durationMs : TIME.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(atMs)) throw new Fault(USAGE, '--expires takes 30d or 2027-01-31T12:00:00Z')
  if (atMs <= nowMs) throw new Fault(USAGE, '--expires is over already')
  return atMs
}

function shownKey({ id, name, scopes, plan, createdAtMs, expiresAtMs }: KeyRecord) {
  return { id, name, scopes, plan, created_at: timeOf(createdAtMs), expires_at: timeOf(expiresAtMs) }
}

function timeOf(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}

export const NAME = /^\P{Cc}{1,100}$/u
/** RFC 3339. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/
const PAGE = 200
