import { stringify } from 'yaml'
import * as z from 'zod'
import { type App, appIn, readApps } from '../../apps/app.ts'
import { placed, readSource } from '../../config/source.ts'
import { DocumentFault, type DocumentProblem, Place } from '../../shared/problem.ts'
import { RUNNING_OPTIONS } from '../../runtime/running.ts'
import { textIn } from '../../runtime/policy-source.ts'
import type { Arguments, CommandAction, ExitCode, Group } from '../../terminal/command.ts'
import type { Io } from '../../terminal/io.ts'
import { JSON_OPTION, printJson } from '../../terminal/json-option.ts'
import { renderTable, visible } from '../../terminal/table.ts'
import { asked, called } from '../access/ask-running.ts'
import { type AppChange, keptHosts, planLines, planOf, planSummary } from './app-plan.ts'

const FILE = { name: 'FILE', description: 'YAML with a list apps, as in the settings' }

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
  description: ['Apps that exist stay as they are; "apps apply" changes them.'],
  operands: [FILE],
  options: [JSON_OPTION, ...RUNNING_OPTIONS],
  examples: [{ command: 'apps import apps.yaml', description: 'From a file' }],
  run: (given, io) => runPlan(given, io, { isImport: true }),
}

const exportApps: CommandAction = {
  name: 'export',
  summary: 'Print the apps of the API as YAML, for "apps apply"',
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
    'Each app changes on its own: if one change is refused, those before it stay in force.',
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
  }
  const made = await asked(given, io, app, '/v1/apps', body)
  if (given.flag('json')) printJson(io, made)
  else io.stdout.write(`${made.id}\n`)
  return 0
}

async function runExport(given: Arguments, io: Io): Promise<ExitCode> {
  const stored = (await allApps(given, io)).filter(({ source }) => source === 'api')
  io.stdout.write(stringify({ apps: stored.map(appIn) }))
  return 0
}

async function runPlan(
  given: Arguments,
  io: Io,
  { isImport }: { readonly isImport: boolean },
): Promise<ExitCode> {
  const wanted = await appsIn(given.operands[0]!)
  const all = await allApps(given, io)
  // An app of the settings is refused by the API, unless it is the same.
  const listed = new Set(wanted.map(({ id }) => id))
  const current = all.filter(({ id, source }) => source === 'api' || listed.has(id)).map(appIn)
  const plan = planOf(current, wanted, { prunes: !isImport && given.flag('prune') })
  const changes = isImport ? plan.filter(({ action }) => action === 'create') : plan
  const isDry = !isImport && given.flag('dry-run')
  if (!isDry) await applied(given, io, changes, wanted)
  if (given.flag('json')) printJson(io, { dry_run: isDry, changes })
  else for (const line of [...planLines(changes), planSummary(changes)]) io.stdout.write(`${visible(line)}\n`)
  return isDry && changes.length > 0 ? 1 : 0
}

async function applied(
  given: Arguments,
  io: Io,
  changes: readonly AppChange[],
  wanted: readonly App[],
): Promise<void> {
  const patch = ({ id }: App, body: object) =>
    called(given, io, app, { method: 'PATCH', path: `/v1/apps/${id}`, body })
  for (const change of changes)
    if (change.action === 'delete')
      await called(given, io, z.null(), {
        method: 'DELETE',
        path: `/v1/apps/${change.before.id}`,
        body: null,
      })
  // Frees the hosts that move to another app.
  for (const change of changes) {
    const hosts = keptHosts(change, wanted)
    if (hosts !== null && change.action === 'update') await patch(change.before, { hosts })
  }
  for (const change of changes) {
    if (change.action === 'update') {
      const { id, ...members } = change.after
      await patch({ id, ...members }, members)
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

/** Throws a Fault with every problem of the file. */
async function appsIn(file: string): Promise<readonly App[]> {
  const source = readSource(await textIn(file), file)
  return placed(source, () => {
    const problems: DocumentProblem[] = []
    const place = Place.of(source.value, problems)
    const found = place.members(['apps']).get('apps')
    if (found === undefined && place.isMapping) place.refuse('has no list apps')
    const apps = found === undefined ? [] : readApps(found)
    if (problems.length > 0) throw new DocumentFault('APPS_INVALID', problems)
    return apps
  })
}

const app = z.object({
  id: z.string(),
  name: z.string(),
  team: z.string().nullable(),
  hosts: z.array(z.string()),
  upstream: z.string().nullable(),
  labels: z.array(z.string()),
  source: z.string(),
})
const appsAnswer = z.object({ apps: z.array(app) })
const PAGE_LENGTH = 200
