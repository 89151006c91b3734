import { isDeepStrictEqual } from 'node:util'
import { stringify } from 'yaml'
import * as z from 'zod'
import { type App, type AppQuota, appIn, DEFAULT_APP, QUOTA_WINDOWS } from '../../apps/app.ts'
import { ALL_APPS } from '../../apps/app-scope.ts'
import { Fault } from '../../shared/fault.ts'
import { RUNNING_OPTIONS } from '../../runtime/running.ts'
import { USAGE } from '../../terminal/arguments.ts'
import type { Arguments, CommandAction, ExitCode, Group } from '../../terminal/command.ts'
import type { Io } from '../../terminal/io.ts'
import { JSON_OPTION, printJson } from '../../terminal/json-option.ts'
import { renderTable, visible } from '../../terminal/table.ts'
import { answered, asked, called } from '../access/ask-running.ts'
import { readAppFile } from './app-file.ts'
import { type AppChange, appLines, keptHosts, planOf, planSummary } from './app-plan.ts'
import { policyChanges, policyLines, policyOf, putPolicy } from './policy-changes.ts'

const FILE = {
  name: 'FILE',
  description: 'YAML with a list apps, as in the settings, each also with policy or policy_file',
}

const list: CommandAction = {
  name: 'list',
  summary: 'List the apps of the settings and of the API',
  operands: [],
  options: [JSON_OPTION, ...RUNNING_OPTIONS],
  examples: [{ command: 'apps list --key-file ~/.gatehouse-key', description: 'By id' }],
  run: runList,
}

const create: CommandAction = {
  name: 'create',
  summary: 'Create an app',
  operands: [{ name: 'ID', description: 'Letters a-z, digits and hyphens' }],
  options: [
    { name: 'name', value: 'NAME', description: 'A name for people (default: the id)' },
    { name: 'team', value: 'TEAM', description: 'The id of the team that owns it' },
    { name: 'host', value: 'HOST', description: 'A host of its requests, as in proxy.hosts; repeatable' },
    { name: 'upstream', value: 'NAME', description: 'The name of the upstream for its requests' },
    { name: 'label', value: 'LABEL', description: 'A label; repeatable' },
    {
      name: 'quota',
      value: 'COUNTS',
      description: 'API calls of its team in each minute, hour or day, like minute=600,day=100000',
    },
    JSON_OPTION,
    ...RUNNING_OPTIONS,
  ],
  examples: [
    {
      command: 'apps create shop --team retail --host shop.example --host "*.shop.example"',
      description: 'With the key in GATEHOUSE_KEY',
    },
  ],
  run: runCreate,
}

const importApps: CommandAction = {
  name: 'import',
  summary: 'Create the apps of a file that do not exist yet',
  description: [
    'Apps that exist stay as they are; "apps apply" changes them. A policy under policies is taken if its app has none.',
  ],
  operands: [FILE],
  options: [JSON_OPTION, ...RUNNING_OPTIONS],
  examples: [{ command: 'apps import apps.yaml', description: 'From a file' }],
  run: (given, io) => runPlan(given, io, { isImport: true }),
}

const exportApps: CommandAction = {
  name: 'export',
  summary: 'Print the apps of the API as YAML, for "apps apply"',
  description: [
    'Each with its policy. The policies of other apps, those of the settings and "default", are under policies. The key needs the scope admin for policies.',
  ],
  operands: [],
  options: RUNNING_OPTIONS,
  examples: [{ command: 'apps export > apps.yaml', description: 'To a file' }],
  run: runExport,
}

const apply: CommandAction = {
  name: 'apply',
  summary: 'Make the apps of the API those of a file',
  description: [
    'Creates and changes apps, and with --prune deletes those that are not in the file. Apps of the settings stay as they ' +
      'are. Prints each difference. With --dry-run it only prints them, and the exit code is 1 if there are any.',
    'An app of the file without policy and policy_file keeps the policy that it has. To remove all rules, write {rules: []}. ' +
      'The names of policy files are relative to the file.',
    'Each app changes on its own, and so does each policy: if one change is refused, those before it stay in force.',
  ],
  operands: [FILE],
  options: [
    { name: 'dry-run', description: 'Change nothing' },
    { name: 'prune', description: 'Delete the apps that are not in the file' },
    JSON_OPTION,
    ...RUNNING_OPTIONS,
  ],
  examples: [
    { command: 'apps apply apps.yaml --dry-run', description: 'Show the differences' },
    { command: 'apps apply apps.yaml --prune', description: 'Make them the same' },
  ],
  run: (given, io) => runPlan(given, io, { isImport: false }),
}

export const apps: Group = {
  name: 'apps',
  summary: 'List, create, import, export and apply the apps of a running Gatehouse',
  description: [
    'Uses the API of a running Gatehouse. The key is an API key with the scope admin (read is enough to list and export), ' +
      'or an access token. It is read from the file, otherwise from GATEHOUSE_KEY.',
  ],
  subcommands: [list, create, importApps, exportApps, apply],
}

async function runList(given: Arguments, io: Io): Promise<ExitCode> {
  const all = await allApps(given, io)
  if (given.flag('json')) {
    printJson(io, all)
    return 0
  }
  const rows = all.map(({ id, name, team, hosts, upstream, source }) => {
    return [id, name, team ?? '', hosts.join(' '), upstream ?? '', source]
  })
  const columns = [
    { title: 'ID' },
    { title: 'NAME', flexible: true as const },
    { title: 'TEAM' },
    { title: 'HOSTS', flexible: true as const },
    { title: 'UPSTREAM' },
    { title: 'SOURCE' },
  ]
  io.stdout.write(`${renderTable(columns, rows, io.columns).join('\n')}\n`)
  return 0
}

async function runCreate(given: Arguments, io: Io): Promise<ExitCode> {
  const body = {
    id: given.operands[0]!,
    name: given.value('name'),
    team: given.value('team'),
    hosts: given.values('host'),
    upstream: given.value('upstream'),
    labels: given.values('label'),
    quota: quotaIn(given.value('quota')),
  }
  const made = await asked(given, io, app, '/v1/apps', body)
  if (given.flag('json')) printJson(io, made)
  else io.stdout.write(`${made.id}\n`)
  return 0
}

function quotaIn(text: string | null): AppQuota | null {
  if (text === null) return null
  const limits = text.split(',').map((part) => {
    const [, window, count] = QUOTA_PART.exec(part.trim()) ?? []
    if (window === undefined)
      throw new Fault(
        USAGE,
        `--quota must be like minute=600,day=100000, with ${QUOTA_WINDOWS.join(', ')}; not "${text}"`,
      )
    return [window, Number(count)] as const
  })
  return Object.fromEntries(limits)
}

async function runExport(given: Arguments, io: Io): Promise<ExitCode> {
  const all = await allApps(given, io)
  const policies = await policiesIn(given, io, [DEFAULT_APP, ...all.map(({ id }) => id)])
  const apps = all
    .filter(({ source }) => source === 'api')
    .map((each) => ({ ...appIn(each), ...(policies.has(each.id) && { policy: policies.get(each.id) }) }))
  const others = [...policies].filter(([id]) => apps.every((each) => each.id !== id))
  io.stdout.write(stringify({ apps, ...(others.length > 0 && { policies: Object.fromEntries(others) }) }))
  return 0
}

/** The policies of apps that have one. Empty, with a warning, if the key may not read them. */
async function policiesIn(given: Arguments, io: Io, ids: readonly string[]): Promise<Map<string, unknown>> {
  const policies = new Map<string, unknown>()
  const { scopes, apps } = await asked(given, io, me, '/v1/me', null)
  if (!scopes.includes('admin')) {
    io.stderr.write(
      'warning: the policies of the apps are left out: the key needs the scope admin for them\n',
    )
    return policies
  }
  for (const id of ids.filter((each) => apps === ALL_APPS || apps.includes(each))) {
    const { document } = await policyOf(given, io, id)
    if (document !== null) policies.set(id, document)
  }
  return policies
}

async function runPlan(
  given: Arguments,
  io: Io,
  { isImport }: { readonly isImport: boolean },
): Promise<ExitCode> {
  const { apps: wanted, policies } = await readAppFile(given.operands[0]!)
  const all = await allApps(given, io)
  // An app of the settings is refused by the API, unless it is the same.
  const listed = new Set(wanted.map(({ id }) => id))
  const current = all.filter(({ id, source }) => source === 'api' || listed.has(id)).map(appIn)
  const plan = planOf(current, wanted, { prunes: !isImport && given.flag('prune') })
  const changes = isImport ? plan.filter(({ action }) => action === 'create') : plan
  const known = new Set(all.map(({ id }) => id))
  const stray = [...policies.keys()].find((id) => !listed.has(id) && !known.has(id) && id !== DEFAULT_APP)
  if (stray !== undefined)
    throw new Fault('APP_UNKNOWN', `policies: the app "${stray}" is unknown: add it to the list apps`)
  const isNew = (id: string) => listed.has(id) && !known.has(id)
  const differing = await policyChanges(given, io, policies, isNew)
  const ofPolicies = isImport
    ? differing.filter(({ id, before }) => isNew(id) || (!listed.has(id) && before === null))
    : differing
  const isDry = !isImport && given.flag('dry-run')
  if (!isDry) {
    await applied(given, io, changes, wanted)
    for (const change of ofPolicies) await putPolicy(given, io, change)
  }
  const said = [...appLines(changes), ...ofPolicies.flatMap(policyLines)]
  if (given.flag('json')) {
    const shown = ofPolicies.map(({ etag: _, ...change }) => change)
    printJson(io, { dry_run: isDry, changes: [...changes, ...shown] })
  } else {
    const lines = [...said, planSummary(changes, ofPolicies.length)]
    io.stdout.write(`${lines.map((line) => visible(line)).join('\n')}\n`)
  }
  return isDry && changes.length + ofPolicies.length > 0 ? 1 : 0
}

async function applied(
  given: Arguments,
  io: Io,
  changes: readonly AppChange[],
  wanted: readonly App[],
): Promise<void> {
  /** The ETag of the app, if it is as it was when the changes were planned. */
  const etagOf = async (before: App) => {
    const path = `/v1/apps/${before.id}`
    const { data, etag } = await answered(given, io, app, { method: 'GET', path, body: null })
    if (isDeepStrictEqual(appIn(data), before)) return etag
    throw new Fault('APP_CHANGED', `the app "${before.id}" has been changed meanwhile: run the command again`)
  }
  const patch = async (before: App, body: Partial<App>) => {
    const ifMatch = await etagOf(before)
    await called(given, io, app, { method: 'PATCH', path: `/v1/apps/${before.id}`, body, ifMatch })
    return { ...before, ...body }
  }
  for (const change of changes) {
    if (change.action !== 'delete') continue
    const { before } = change
    const ifMatch = await etagOf(before)
    await called(given, io, z.null(), {
      method: 'DELETE',
      path: `/v1/apps/${before.id}`,
      body: null,
      ifMatch,
    })
  }
  const freed = new Map<string, App>()
  // Frees the hosts that move to another app.
  for (const change of changes) {
    const hosts = keptHosts(change, wanted)
    if (hosts !== null && change.action === 'update')
      freed.set(change.before.id, await patch(change.before, { hosts }))
  }
  for (const change of changes) {
    if (change.action === 'update') {
      const { id, ...members } = change.after
      await patch(freed.get(id) ?? change.before, members)
    } else if (change.action === 'create') await asked(given, io, app, '/v1/apps', change.after)
  }
}

async function allApps(given: Arguments, io: Io): Promise<readonly z.output<typeof app>[]> {
  const all: z.output<typeof app>[] = []
  for (let page = 1; ; page++) {
    const found = await asked(given, io, appsAnswer, `/v1/apps?limit=${PAGE_LENGTH}&page=${page}`, null)
    all.push(...found.apps)
    if (found.apps.length < PAGE_LENGTH) return all
  }
}

const app = z.object({
  id: z.string(),
  name: z.string(),
  team: z.string().nullable(),
  hosts: z.array(z.string()),
  upstream: z.string().nullable(),
  labels: z.array(z.string()),
  quota: z.partialRecord(z.enum(QUOTA_WINDOWS), z.number()).nullable(),
  source: z.string(),
})
const me = z.object({
  scopes: z.array(z.string()),
  apps: z.union([z.array(z.string()), z.literal(ALL_APPS)]),
})
const appsAnswer = z.object({ apps: z.array(app) })
const QUOTA_PART = new RegExp(`^(${QUOTA_WINDOWS.join('|')})=(\\d{1,10})$`)
const PAGE_LENGTH = 200
