import { isDecisive } from '../../classify/known/signature.ts'
import {
  CATEGORIES,
  PURPOSES,
  type Purpose,
  SOFTWARE_KINDS,
  type Software,
} from '../../classify/known/software.ts'
import { ConfigFault } from '../../config/source.ts'
import type { Arguments, Command, ExitCode } from '../../terminal/command.ts'
import type { Io } from '../../terminal/io.ts'
import { JSON_OPTION, printJson } from '../../terminal/json-option.ts'
import { loadSoftware, SignatureReading } from '../../runtime/signatures/signature-files.ts'
import type { LineSink } from '../../runtime/signatures/signature-lines.ts'
import { many, pathsOf, SIGNATURE_FILES } from '../../runtime/signatures/signature-options.ts'
import { explainSignatures } from './signatures-explain.ts'
import { exportSignatures } from './signatures-export.ts'
import { feedKey, feedVerify } from './signatures-feed.ts'
import { importSignatures } from './signatures-import.ts'
import { listFeeds, rollback } from './signatures-rollback.ts'
import { renderTable, visible } from '../../terminal/table.ts'

export const signatures: Command = {
  name: 'signatures',
  summary: 'Check, show, explain and extend the signatures of known software',
  description: [
    'Signatures are YAML files: a list of software, each with its fingerprints and header patterns and their origin. Long lists are *.jsonl files with one signature a line. signatures/README.md describes the format.',
  ],
  subcommands: [
    {
      name: 'validate',
      summary: 'Check signature files',
      description: ['Prints every problem with file, line and column (exit code 1), or else a summary.'],
      operands: [SIGNATURE_FILES],
      options: [JSON_OPTION],
      examples: [
        { command: 'signatures validate', description: 'The built-in signatures' },
        { command: 'signatures validate own/', description: 'All files of a folder, as one set' },
      ],
      run: validate,
    },
    {
      name: 'list',
      summary: 'List the software in signatures',
      operands: [SIGNATURE_FILES],
      options: [
        { name: 'kind', value: 'KIND', description: 'Only this kind', choices: SOFTWARE_KINDS },
        {
          name: 'category',
          value: 'CATEGORY',
          description: 'Only agents of this category',
          choices: CATEGORIES,
        },
        {
          name: 'purpose',
          value: 'PURPOSE',
          description: 'Only agents with this published purpose',
          choices: PURPOSES,
        },
        {
          name: 'q',
          value: 'TEXT',
          description: 'Only software with this text in its id, name, aliases, vendor or description',
        },
        { name: 'json', description: 'One JSON object a line, instead of a table' },
      ],
      examples: [
        { command: 'signatures list --kind agent', description: 'Every agent' },
        {
          command: 'signatures list --purpose training',
          description: 'Agents that collect pages to train models',
        },
        { command: 'signatures list --q openai --json', description: 'For a program' },
      ],
      run: list,
    },
    explainSignatures,
    importSignatures,
    exportSignatures,
    feedKey,
    feedVerify,
    listFeeds,
    rollback,
  ],
}

async function validate(given: Arguments, io: Io): Promise<ExitCode> {
  try {
    const paths = pathsOf(given)
    const reading = await SignatureReading.of(paths)
    const ours = reading.longLists.length === 0 || paths === null ? [] : await loadSoftware(null)
    const count = new SignatureCount(reading, ours)
    await reading.readLines(count)
    reading.done()
    if (given.flag('json')) printJson(io, { problems: [], ...count.counts() })
    else io.stdout.write(`${count.text()}\n`)
    return 0
  } catch (error) {
    if (!(error instanceof ConfigFault)) throw error
    if (given.flag('json')) {
      printJson(io, { problems: error.problems })
      return 1
    }
    for (const { where, what } of error.problems) io.stderr.write(`${visible(`${where}: ${what}`)}\n`)
    io.stderr.write(`${many(error.problems.length, 'problem')}\n`)
    return 1
  }
}

async function list(given: Arguments, io: Io): Promise<ExitCode> {
  const inLines = new Map<string, { all: number; decisive: number }>()
  const software = await loadSoftware(pathsOf(given), ({ id }, { isDecisive }) => {
    const { all, decisive } = inLines.get(id) ?? NONE
    inLines.set(id, { all: all + 1, decisive: decisive + Number(isDecisive) })
    return false
  })
  const countsOf = ({ id, signatures }: Software): Counts => {
    const { all, decisive } = inLines.get(id) ?? NONE
    return { all: signatures.length + all, decisive: signatures.filter(isDecisive).length + decisive }
  }
  const wanted = software
    .filter((software) => isWanted(software, given))
    .sort((a, b) => (a.id < b.id ? -1 : 1))
  if (given.flag('json')) {
    io.stdout.write(
      wanted.map((software) => `${JSON.stringify(summaryOf(software, countsOf(software)))}\n`).join(''),
    )
    return 0
  }
  if (wanted.length === 0) {
    io.stderr.write('No software is like this.\n')
    return 0
  }
  const columns = [
    { title: 'ID' },
    { title: 'NAME', flexible: true },
    { title: 'KIND' },
    { title: 'CATEGORY' },
    { title: 'PURPOSE' },
    { title: 'SIGNATURES', align: 'right' },
    { title: 'DECISIVE', align: 'right' },
  ] as const
  const rows = wanted.map((software) => {
    const { id, name, kind, category, purposes } = software
    const { all, decisive } = countsOf(software)
    return [id, name, kind, category ?? '', purposes.join(', '), String(all), String(decisive)]
  })
  io.stdout.write(`${renderTable(columns, rows, io.columns).join('\n')}\n`)
  return 0
}

function isWanted(software: Software, given: Arguments): boolean {
  const { id, name, aliases, vendor, description } = software
  const [kind, category, purpose] = [given.value('kind'), given.value('category'), given.value('purpose')]
  const text = given.value('q')?.toLowerCase() ?? ''
  if (kind !== null && software.kind !== kind) return false
  if (category !== null && software.category !== category) return false
  if (purpose !== null && !software.purposes.includes(purpose as Purpose)) return false
  return [id, name, ...aliases, vendor ?? '', description ?? ''].some((said) =>
    said.toLowerCase().includes(text),
  )
}

interface Counts {
  readonly all: number
  readonly decisive: number
}

function summaryOf(
  { id, name, kind, category, purposes, vendor, aliases }: Software,
  { all, decisive }: Counts,
): object {
  return { id, name, kind, category, purpose: purposes, vendor, aliases, signatures: all, decisive }
}

/** Counts signatures without storing them: there may be a million. */
class SignatureCount implements LineSink {
  readonly #kinds = new Map(SOFTWARE_KINDS.map((kind) => [kind, 0]))
  readonly #ids: Set<string>
  readonly #files: number
  #software = 0
  #signatures = 0

  /** `ours`: the bundled software, whose fingerprints may be in long lists. */
  constructor({ lists, longLists }: SignatureReading, ours: readonly Software[]) {
    this.#ids = new Set(ours.map(({ id }) => id))
    this.#files = lists.length + longLists.length
    for (const { list } of lists) for (const software of list) this.software(software)
  }

  software({ id, kind, signatures }: Software): void {
    this.#ids.add(id)
    this.#kinds.set(kind, this.#kinds.get(kind)! + 1)
    this.#software++
    this.#signatures += signatures.length
  }

  fingerprint(of: string): boolean {
    this.#signatures++
    return this.#ids.has(of)
  }

  counts() {
    const [software, signatures, files] = [this.#software, this.#signatures, this.#files]
    return { software, kinds: Object.fromEntries(this.#kinds), signatures, files }
  }

  text(): string {
    const kinds = [...this.#kinds].map(([kind, count]) => many(count, kind)).join(', ')
    const signatures = many(this.#signatures, 'signature')
    return `${this.#software} software (${kinds}) with ${signatures} in ${many(this.#files, 'file')}`
  }
}

const NONE: Counts = { all: 0, decisive: 0 }
