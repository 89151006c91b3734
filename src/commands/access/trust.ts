import { ALL_APPS } from '../../apps/app-scope.ts'
import { Fault } from '../../shared/fault.ts'
import { COMMAND_LINE } from '../../manage/http/audit.ts'
import { makeTrust, removeTrust, type TrustSubject, type TrustTerms } from '../../manage/auth/make-trust.ts'
import { knownPlan, PLANS, type Plan, SCOPES } from '../../manage/http/access/principal.ts'
import { Refusal } from '../../manage/http/refusal.ts'
import type { TrustRecord } from '../../store/people/trust.ts'
import { APP_OPTION, appsIn, appsText, optionalNameIn, scopesIn, timeText } from './access-options.ts'
import type { CommandAction, Arguments, ExitCode, Group } from '../../terminal/command.ts'
import type { Io } from '../../terminal/io.ts'
import { JSON_OPTION } from '../../terminal/json-option.ts'
import { printRecords } from '../record/record-list.ts'
import { configGiven, STORE_OPTIONS, withStore } from '../../runtime/store-given.ts'
import { visible } from '../../terminal/table.ts'
import { unreadable } from '../../terminal/unreadable.ts'
import { readBoundedText } from '../../shared/bounded-file.ts'

const add: CommandAction = {
  name: 'add',
  summary: 'Trust an agent or a key, with these scopes',
  description: [
    'AGENT is the URL of an Agent Identity Document, or of an origin with a key directory. Or it is a JSON file: the ' +
      'public key (JWK) of a GNAP client, or an Agent Identity Document to store here instead of fetching it.',
    'Each agent or key has one entry. A running gateway applies it within a second.',
  ],
  operands: [{ name: 'AGENT', description: 'https://…, or a FILE' }],
  options: [
    { name: 'scopes', value: 'SCOPES', description: `Separated by commas: ${SCOPES.join(', ')}` },
    APP_OPTION,
    { name: 'name', value: 'NAME', description: 'A name for people to read; up to 100 characters' },
    {
      name: 'plan',
      value: 'PLAN',
      description: 'Its rate limit',
      choices: PLANS,
      default: 'standard',
    },
    JSON_OPTION,
    ...STORE_OPTIONS,
  ],
  examples: [
    {
      command: 'trust add https://agent.example/identity.json --scopes read,detect',
      description: 'An agent',
    },
    { command: 'trust add client.jwk --scopes read --name "build robot"', description: 'A key' },
  ],
  run: runAdd,
}

const list: CommandAction = {
  name: 'list',
  summary: 'List the trusted agents and keys',
  operands: [],
  options: [JSON_OPTION, ...STORE_OPTIONS],
  examples: [{ command: 'trust list', description: 'Newest first' }],
  run: runList,
}

const remove: CommandAction = {
  name: 'remove',
  summary: 'Stop trusting an agent or a key, everywhere within a second',
  operands: [{ name: 'ID', description: 'Its id, as "trust list" shows it: trs_…' }],
  options: STORE_OPTIONS,
  examples: [{ command: 'trust remove trs_x7c1Jq0aT5b2Lw9k', description: 'Permanently' }],
  run: runRemove,
}

export const trust: Group = {
  name: 'trust',
  summary: 'Manage which Agent Identities and keys may use the API',
  description: ['Works on the database of a gateway, whether the gateway runs or not.'],
  subcommands: [add, list, remove],
}

async function runAdd(given: Arguments, io: Io): Promise<ExitCode> {
  const wanted = termsIn(given)
  const subject = await subjectIn(given.operands[0]!)
  const { apps: configured, fetch } = configGiven(given, io)
  const rules = { allowPrivate: fetch.allowPrivateAddresses }
  const record = await withStore(given, io, true, async (store) => {
    const terms = { ...wanted, apps: await appsIn(given, store, configured) }
    return makeTrust(store, { subject, terms, rules }, COMMAND_LINE, Date.now()).catch((error: unknown) => {
      throw error instanceof Refusal ? new Fault('TRUST_REFUSED', error.message, { cause: error }) : error
    })
  })
  if (given.flag('json')) io.stdout.write(`${JSON.stringify(shownTrust(record))}\n`)
  else io.stdout.write(`${record.id}\n`)
  return 0
}

function runList(given: Arguments, io: Io): Promise<ExitCode> {
  return printRecords(given, io, {
    columns: [
      { title: 'ID' },
      { title: 'AGENT OR KEY', flexible: true },
      { title: 'NAME', flexible: true },
      { title: 'SCOPES', flexible: true },
      { title: 'APPS', flexible: true },
      { title: 'PLAN' },
      { title: 'CREATED' },
    ],
    page: (store, page) => store.trust.list(page, ALL_APPS),
    shown: shownTrust,
    row: (each) => {
      const subject = 'thumbprint' in each ? each.thumbprint : each.agent_id
      const created = each.created_at?.slice(0, 16) ?? ''
      const access = [each.scopes.join(','), appsText(each.apps), knownPlan(each.plan)]
      return [each.id, subject, each.name ?? '', ...access, created]
    },
  })
}

async function runRemove(given: Arguments, io: Io): Promise<ExitCode> {
  const id = given.operands[0]!
  const { subject } = await withStore(given, io, false, async (store) => {
    const found = await store.trust.byId(id)
    if (found === null || !(await removeTrust(store, found, COMMAND_LINE, Date.now())))
      throw new Fault('TRUST_UNKNOWN', `there is no entry ${id}`)
    return found
  })
  io.stderr.write(`${id}: ${visible(subject)}: no longer trusted\n`)
  return 0
}

function termsIn(given: Arguments): Omit<TrustTerms, 'apps'> {
  const [name, scopes] = [optionalNameIn(given), scopesIn(given)]
  return { name, scopes, plan: given.value('plan') as Plan }
}

async function subjectIn(agent: string): Promise<TrustSubject> {
  if (/^\w+:\/\//.test(agent)) return { agent_id: agent }
  const text = await readBoundedText(agent).catch((error: unknown) => {
    throw new Fault('UNREADABLE', `${agent}: ${unreadable(error).message}`, { cause: error })
  })
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    value = null
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Fault('TRUST_REFUSED', `${agent} does not contain a JSON object`)
  const members = value as Readonly<Record<string, unknown>>
  return 'kty' in members ? { jwk: members } : { document: members }
}

function shownTrust({ id, kind, subject, name, scopes, apps, plan, createdAtMs }: TrustRecord) {
  const shown = kind === 'key' ? { thumbprint: subject } : { agent_id: subject }
  return { id, ...shown, name, scopes, apps, plan, created_at: timeText(createdAtMs) }
}
