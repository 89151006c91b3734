import { ALL_APPS } from '../../apps/app-scope.ts'
import { Fault } from '../../shared/fault.ts'
import { changed, COMMAND_LINE } from '../../manage/http/audit.ts'
import { makeKey, type WantedKey } from '../../manage/auth/make-key.ts'
import { ACCESS, PLANS, type Plan, planFor, SCOPES } from '../../manage/http/access/principal.ts'
import { parseDurationMs } from '../../policy/duration.ts'
import type { KeyRecord } from '../../store/people/keys.ts'
import { accessIn, APP_OPTION, appsIn, appsText, limitText, nameIn, timeText } from './access-options.ts'
import { USAGE } from '../../terminal/arguments.ts'
import type { CommandAction, Arguments, ExitCode, Group } from '../../terminal/command.ts'
import type { Io } from '../../terminal/io.ts'
import { JSON_OPTION } from '../../terminal/json-option.ts'
import { printRecords } from '../record/record-list.ts'
import { configGiven, STORE_OPTIONS, withStore } from '../../runtime/store-given.ts'
import { visible } from '../../terminal/table.ts'

const create: CommandAction = {
  name: 'create',
  summary: 'Create an API key, and print it',
  description: [
    'Prints only the key on stdout, so that it can be piped; its scopes go to stderr. The key is shown only once: ' +
      'Gatehouse stores a hash of it.',
    'A running gateway accepts the key at once. If the gateway has never run, this creates its database: run it as the ' +
      'same user as the gateway.',
  ],
  operands: [],
  options: [
    { name: 'name', value: 'NAME', description: 'A name for people to read; up to 100 characters' },
    {
      name: 'access',
      value: 'ACCESS',
      description: 'Its permissions',
      choices: Object.keys(ACCESS),
    },
    {
      name: 'scopes',
      value: 'SCOPES',
      description: `Instead of --access, separated by commas: ${SCOPES.join(', ')}`,
    },
    APP_OPTION,
    {
      name: 'plan',
      value: 'PLAN',
      description: 'Its rate limit (default: standard; for administrators, unlimited)',
      choices: PLANS,
    },
    {
      name: 'expires',
      value: 'WHEN',
      description: 'When it expires: 30d or 2027-01-31T12:00:00Z (default: never)',
    },
    JSON_OPTION,
    ...STORE_OPTIONS,
  ],
  examples: [
    { command: 'keys create --name admin --access admin', description: 'The first key' },
    {
      command: 'keys create --name ci --access read --expires 90d --config /etc/gatehouse.yaml',
      description: 'A key that expires',
    },
    { command: 'keys create --name shop --access admin --app shop', description: 'The first key of a team' },
  ],
  run: runCreate,
}

const list: CommandAction = {
  name: 'list',
  summary: 'List the API keys that are not revoked',
  operands: [],
  options: [JSON_OPTION, ...STORE_OPTIONS],
  examples: [{ command: 'keys list', description: 'Newest first' }],
  run: runList,
}

const revoke: CommandAction = {
  name: 'revoke',
  summary: 'Revoke an API key, everywhere within a second',
  operands: [{ name: 'ID', description: 'Its id, as "keys list" shows it: key_…' }],
  options: STORE_OPTIONS,
  examples: [{ command: 'keys revoke key_x7c1Jq0aT5b2Lw9k', description: 'Permanently' }],
  run: runRevoke,
}

export const keys: Group = {
  name: 'keys',
  summary: 'Create, list and revoke API keys',
  description: ['Works on the database of a gateway, whether the gateway runs or not.'],
  subcommands: [create, list, revoke],
}

async function runCreate(given: Arguments, io: Io): Promise<ExitCode> {
  const nowMs = Date.now()
  const wanted = wantedKey(given, nowMs)
  const { key, record } = await withStore(given, io, true, async (store) => {
    const apps = await appsIn(given, store, configGiven(given, io).apps)
    return makeKey(store, { ...wanted, apps }, COMMAND_LINE, nowMs)
  })
  const shown = shownKey(record)
  if (given.flag('json')) {
    io.stdout.write(`${JSON.stringify({ ...shown, key })}\n`)
    return 0
  }
  io.stdout.write(`${key}\n`)
  const end = shown.expires_at === null ? 'never expires' : `expires ${shown.expires_at}`
  const scopes = shown.scopes.join(', ')
  io.stderr.write(
    `${shown.id}: ${visible(shown.name)}: ${scopes}${limitText(shown.apps)}; plan ${shown.plan}; ${end}; shown here only\n`,
  )
  return 0
}

function runList(given: Arguments, io: Io): Promise<ExitCode> {
  return printRecords(given, io, {
    columns: [
      { title: 'ID' },
      { title: 'NAME', flexible: true },
      { title: 'SCOPES', flexible: true },
      { title: 'APPS', flexible: true },
      { title: 'PLAN' },
      { title: 'CREATED' },
      { title: 'EXPIRES' },
      { title: 'LAST USED' },
    ],
    page: (store, page) => store.keys.list(page, ALL_APPS),
    shown: (record) => ({ ...shownKey(record), last_used_at: timeText(record.lastUsedAtMs) }),
    row: ({ id, name, scopes, apps, plan, created_at, expires_at, last_used_at }) => {
      const times = [created_at, expires_at, last_used_at].map((time) => time?.slice(0, 16) ?? 'never')
      return [id, name, scopes.join(','), appsText(apps), plan, ...times]
    },
  })
}

async function runRevoke(given: Arguments, io: Io): Promise<ExitCode> {
  const id = given.operands[0]!
  const { name } = await withStore(given, io, false, async (store) => {
    const found = await store.keys.byId(id)
    if (found?.revokedAtMs !== null) throw new Fault('KEY_UNKNOWN', `there is no key ${id}`)
    const change = { action: 'revokeKey', subject: id, apps: found.apps, detail: { name: found.name } }
    const nowMs = Date.now()
    await changed(store, COMMAND_LINE, change, nowMs, (queries) => store.keys.revoke(id, nowMs, queries))
    return found
  })
  io.stderr.write(`${id}: ${visible(name)}: revoked\n`)
  return 0
}

function wantedKey(given: Arguments, nowMs: number): Omit<WantedKey, 'apps'> {
  const [name, scopes] = [nameIn(given), accessIn(given)]
  const plan = (given.value('plan') as Plan | null) ?? planFor(scopes)
  return { name, scopes, plan, expiresAtMs: expiryMs(given.value('expires'), nowMs) }
}

function expiryMs(text: string | null, nowMs: number): number | null {
  if (text === null) return null
  const durationMs = parseDurationMs(text)
  const atMs = durationMs !== null ? nowMs + durationMs : TIME.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(atMs)) throw new Fault(USAGE, '--expires must be like 30d or 2027-01-31T12:00:00Z')
  if (atMs <= nowMs) throw new Fault(USAGE, '--expires is over already')
  return atMs
}

function shownKey({ id, name, scopes, apps, plan, createdAtMs, expiresAtMs }: KeyRecord) {
  const times = { created_at: timeText(createdAtMs), expires_at: timeText(expiresAtMs) }
  return { id, name, scopes, apps, plan, ...times }
}

/** RFC 3339. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/
