import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { rename, rm, writeFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { loadConfig } from '../../config/config.ts'
import { Fault } from '../../shared/fault.ts'
import { packedFile, packSnapshotFile, parseSnapshotFile } from '../../plane/snapshot-file.ts'
import { USAGE } from '../../terminal/arguments.ts'
import type { CommandAction, Arguments, ExitCode } from '../../terminal/command.ts'
import type { Io } from '../../terminal/io.ts'
import { JSON_OPTION, printJson } from '../../terminal/json-option.ts'
import { keptSnapshot, madeSnapshot, publishedSnapshot } from '../../runtime/snapshot-origins.ts'
import { describe, summaryOf } from './snapshot-show.ts'
import { STORE_OPTIONS } from '../../runtime/store-given.ts'

const ORIGINS = ['fleet', 'disk', 'store', 'files'] as const
type Origin = (typeof ORIGINS)[number]

export const exportSnapshot: CommandAction = {
  name: 'export',
  summary: 'Write a Snapshot to a file, for bus.bootstrap_file',
  description: [
    'Reads the configuration of a manager or a proxy and changes nothing. The Snapshot comes from one of these:',
    'fleet: the newest Snapshot that a manager has published on NATS (bus.url).',
    'disk: the copy that a manager or proxy keeps in its data folder. It needs no NATS.',
    "store: made now, from the manager's database (with apps and their policies), its files and its feeds.",
    'files: made now, from policy.file, signatures and the feeds in the data folder. It needs no database.',
    'A Snapshot of a fleet is always newer than one made from "store" or "files", which has number 1.',
  ],
  operands: [],
  options: [
    {
      name: 'from',
      value: 'ORIGIN',
      description: 'Where the Snapshot comes from (default: fleet with bus.url, else files)',
      choices: ORIGINS,
    },
    {
      name: 'output',
      value: 'FILE',
      description: 'Write to this file, atomically, instead of standard output',
    },
    { ...JSON_OPTION, description: 'Print what was written as JSON; needs --output' },
    ...STORE_OPTIONS,
  ],
  examples: [
    {
      command: 'snapshot export --config fleet.yaml --output fleet.snapshot',
      description: 'The newest Snapshot of a fleet',
    },
    {
      command: 'snapshot export --from files --config fleet.yaml > fleet.snapshot',
      description: 'Before there is a fleet',
    },
  ],
  run,
}

async function run(given: Arguments, io: Io): Promise<ExitCode> {
  const output = given.value('output')
  if (output === null && given.flag('json')) throw new Fault(USAGE, '--json needs --output')
  if (output === null && io.isTerminal)
    throw new Fault(USAGE, 'a Snapshot is not for a terminal; give --output FILE, or redirect the output')
  const file = await exported(given, io)
  const { document, digest } = await parseSnapshotFile(file)
  if (output === null) {
    if (!io.stdout.write(file)) await once(io.stdout, 'drain')
    return 0
  }
  await writeWhole(output, file)
  const summary = summaryOf(document, digest, file.length)
  if (given.flag('json')) printJson(io, { file: output, ...summary })
  else io.stderr.write(`${output}: ${describe(summary)}\n`)
  return 0
}

async function exported(given: Arguments, io: Io): Promise<Buffer> {
  const { config } = loadConfig({ data: given.values('data') }, given.value('config'), io.env, {
    role: 'store',
  })
  const origin = (given.value('from') as Origin | null) ?? (config.bus.urls.length > 0 ? 'fleet' : 'files')
  switch (origin) {
    case 'fleet':
      return packedFile(await publishedSnapshot(config))
    case 'disk':
      return packedFile(await keptSnapshot(config))
    case 'store':
    case 'files':
      return madeSnapshot(config, origin === 'store', packSnapshotFile)
  }
}

/** Writes atomically. Only the owner can read the file, because a policy may be confidential. */
async function writeWhole(file: string, bytes: Buffer): Promise<void> {
  const draft = `${file}.${randomUUID()}.tmp`
  try {
    await writeFile(draft, bytes, { flag: 'wx', mode: 0o600, flush: true })
    await rename(draft, file)
  } catch (error) {
    await rm(draft, { force: true })
    const { code } = error as NodeJS.ErrnoException
    const fix = `give --output a file in a folder that can be written, not ${dirname(resolve(file))}`
    throw new Fault('FILE_UNWRITABLE', `${file} cannot be written (${code}); ${fix}`, { cause: error })
  }
}
