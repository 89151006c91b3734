import { SIGNATURES_FOLDER } from '../../shared/package-files.ts'
import { randomBytes } from 'node:crypto'
import { realpath, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Software } from '../../classify/known/software.ts'
import { ConfigFault, type Problem } from '../../config/source.ts'
import { Fault } from '../../shared/fault.ts'
import { USAGE } from '../../terminal/arguments.ts'
import type { CommandAction, Arguments, ExitCode } from '../../terminal/command.ts'
import type { Io } from '../../terminal/io.ts'
import { JSON_OPTION, printJson } from '../../terminal/json-option.ts'
import { ja4plusFrom } from '../../runtime/ja4plus-setting.ts'
import { type SignatureChange, edited } from './signature-edits.ts'
import {
  loadSignatureFiles,
  type SignatureFile,
  type TextFile,
} from '../../runtime/signatures/signature-files.ts'
import { isCorpus, Measurements, measureCorpus } from './signature-measurements.ts'
import { many } from '../../runtime/signatures/signature-options.ts'
import { visible } from '../../terminal/table.ts'
import { unreadable } from '../../terminal/unreadable.ts'

export const importSignatures: CommandAction = {
  name: 'import',
  summary: 'Add measured signatures to their software',
  description: [
    'Reads recorded connections, one JSON object a line ("client_hello_hex", "requests", "h2", and the client\'s id or ' +
      'alias in "client"), or files of signatures (*.yaml, or *.jsonl as "signatures export" writes it). Adds to the ' +
      'software of that client: JA4, stable key and HTTP/2 fingerprint of its connections, JA4H of its requests without ' +
      'cookies, and the header order of the pages that a browser requests. Unknown clients are listed, not added.',
    'A new import from the same source replaces its earlier counts, so importing twice counts once. Nothing is removed. ' +
      'Unknown software in a file of signatures goes to a new YAML file. If any file is invalid, nothing is written.',
  ],
  operands: [
    { name: 'FILE', description: 'Recorded connections, or signatures (*.yaml, *.jsonl)', many: true },
  ],
  options: [
    {
      name: 'into',
      value: 'DIRECTORY',
      description: 'The folder of signatures to add to (default: the built-in one)',
    },
    {
      name: 'source',
      value: 'TEXT',
      description: 'How or where the connections were recorded (default: the name of FILE)',
    },
    { name: 'dry-run', description: 'Print what would change, and write nothing' },
    JSON_OPTION,
  ],
  examples: [
    { command: 'signatures import --dry-run recorded.jsonl', description: 'What it would add' },
    { command: 'signatures import --into own others.yaml', description: 'Signatures from another source' },
  ],
  run,
}

async function run(given: Arguments, io: Io): Promise<ExitCode> {
  const folder = given.value('into') ?? SIGNATURES_FOLDER
  if (given.value('source') === '') throw new Fault(USAGE, '--source is empty')
  await checkFolder(folder)
  const files = (await loadSignatureFiles([folder])).filter(isText) // nothing is added to long lists
  const { measurements, newcomers } = await readAll(given, files, io)
  const outcome = outcomeOf(folder, files, measurements, newcomers)
  const isDry = given.flag('dry-run')
  if (!isDry) await writeAll(new Map(outcome.map(({ path, text }) => [path, text])))
  if (given.flag('json')) {
    const changes = outcome.flatMap(({ path, changes }) =>
      changes.map(({ id, isNew, added, replaced }) => ({ path, id, is_new: isNew, added, replaced })),
    )
    printJson(io, { changes, unknown: [...measurements.strangers.keys()], written: !isDry })
  } else report(outcome, measurements, isDry, io)
  return 0
}

function isText(file: SignatureFile): file is TextFile {
  return file.text !== null
}

interface Outcome {
  readonly path: string
  readonly text: string
  readonly changes: readonly SignatureChange[]
}

/** Unknown software, by the name of its source file. */
type Newcomers = ReadonlyMap<string, NewcomerFile>

interface NewcomerFile {
  readonly list: Software[]
  /** Text of the file, if it contains nothing else. */
  readonly text: string | null
}

async function readAll(
  given: Arguments,
  files: readonly TextFile[],
  io: Io,
): Promise<{ measurements: Measurements; newcomers: Newcomers }> {
  const measurements = new Measurements(files.flatMap(({ list }) => list))
  const newcomers = new Map<string, NewcomerFile>()
  const problems: Problem[] = []
  const attempt = async (read: () => Promise<void>) => {
    try {
      await read()
    } catch (error) {
      if (!(error instanceof ConfigFault)) throw error
      problems.push(...error.problems)
    }
  }
  const ja4plus = ja4plusFrom(io.env)
  const corpora = new Set<string>()
  for (const file of given.operands) if (await isCorpus(file)) corpora.add(file)
  for (const file of corpora) {
    const source = given.value('source') ?? basename(file)
    await attempt(() => measureCorpus(file, { source, ja4plus }, measurements))
  }
  const others = given.operands.filter((file) => !corpora.has(file))
  await attempt(async () => {
    for (const file of await loadSignatureFiles(others)) readSignatures(file, measurements, newcomers)
  })
  if (problems.length > 0) throw new ConfigFault(problems, 'SIGNATURES_INVALID')
  return { measurements, newcomers }
}

function readSignatures(
  { path, text, list }: SignatureFile,
  measurements: Measurements,
  newcomers: Map<string, NewcomerFile>,
): void {
  const strangers: Software[] = []
  for (const software of list) {
    const known = measurements.software(software.id)
    if (known === null) strangers.push(software)
    else for (const signature of software.signatures) measurements.add(known.id, signature)
  }
  if (strangers.length === 0) return
  // Hidden files are not read, so drop the leading dots. Additions are written as a YAML list.
  const name = basename(path)
    .replace(/^\.+/, '')
    .replace(/\.jsonl$/, '.yaml')
  const others = newcomers.get(name)?.list ?? []
  const isWhole = others.length === 0 && strangers.length === list.length
  newcomers.set(name, { list: [...others, ...strangers], text: isWhole ? text : null })
}

/** The files to change, and their changes. */
function outcomeOf(
  folder: string,
  files: readonly TextFile[],
  measurements: Measurements,
  newcomers: Newcomers,
): readonly Outcome[] {
  const there = new Set(files.map(({ path }) => path))
  const outcome: Outcome[] = []
  for (const file of files) {
    const added = newcomers.get(basename(file.path))?.list ?? []
    outcome.push({ path: file.path, ...edited(file, (id) => measurements.of(id), added) })
  }
  for (const [name, { list, text }] of newcomers) {
    const path = join(folder, name)
    if (there.has(path)) continue
    const { changes, ...made } = edited({ path, text: '', list: [] }, () => [], list)
    outcome.push({ path, text: text ?? made.text, changes })
  }
  return outcome.filter(({ changes }) => changes.length > 0)
}

async function checkFolder(folder: string): Promise<void> {
  try {
    if ((await stat(folder)).isDirectory()) return
  } catch (error) {
    throw new Fault('UNREADABLE', `${folder}: ${unreadable(error).message}`, { cause: error })
  }
  throw new Fault('UNREADABLE', `${folder}: is not a folder`)
}

/** Writes every text to a temporary file before it replaces the first file. */
async function writeAll(texts: ReadonlyMap<string, string>): Promise<void> {
  const written: { file: string; temporary: string }[] = []
  try {
    for (const [path, text] of texts) {
      // Replace the target of a link, not the link.
      const file = await realpath(path).catch(() => path)
      const mode = (await stat(file).catch(() => null))?.mode ?? 0o644
      const temporary = join(dirname(file), `.${basename(file)}.${randomBytes(6).toString('hex')}.tmp`)
      written.push({ file, temporary })
      await writeFile(temporary, text, { flag: 'wx', mode: mode & 0o777, flush: true })
    }
    for (const { file, temporary } of written) await rename(temporary, file)
  } catch (error) {
    for (const { temporary } of written) await rm(temporary, { force: true }).catch(() => undefined)
    const { path, message } = error as NodeJS.ErrnoException
    throw new Fault('UNWRITABLE', `${path ?? 'signatures'} cannot be written: ${message}`, { cause: error })
  }
}

function report(outcome: readonly Outcome[], { strangers }: Measurements, isDry: boolean, io: Io): void {
  for (const { path, changes } of outcome)
    for (const { id, isNew, added, replaced } of changes) {
      const parts = [
        isNew ? 'new' : '',
        added > 0 ? `${added} added` : '',
        replaced > 0 ? `${replaced} replaced` : '',
      ]
      io.stdout.write(`${path}: ${id}: ${parts.filter((part) => part !== '').join(', ')}\n`)
    }
  if (outcome.length === 0) io.stdout.write('Nothing changes.\n')
  else if (isDry) io.stdout.write('Nothing is written: --dry-run.\n')
  if (strangers.size === 0) return
  io.stdout.write('No software has these names as its id, or alone as an alias; nothing is added for them:\n')
  for (const [name, count] of [...strangers].sort(([a], [b]) => (a < b ? -1 : 1)))
    io.stdout.write(`  ${visible(name)}: ${many(count, 'connection')}\n`)
}
