import { CATEGORIES, SOFTWARE_KINDS, type Software } from '../classify/software.ts'
import { ConfigFault } from '../config-source.ts'
import type { Arguments, Command, ExitCode } from './command.ts'
import type { Io } from './io.ts'
import { loadSignatureFiles, loadSoftware } from './signature-files.ts'
import { many, pathsOf, SIGNATURE_FILES } from './signature-options.ts'
import { explainSignatures } from './signatures-explain.ts'
import { exportSignatures } from './signatures-export.ts'
import { feedKey, feedVerify } from './signatures-feed.ts'
import { importSignatures } from './signatures-import.ts'
import { listFeeds, rollback } from './signatures-rollback.ts'
import { renderTable, visible } from './table.ts'

export const signatures: Command = {
  name: 'signatures',
  summary: 'Check, show, explain and extend the signatures that put names to fingerprints',
  description: [
    'Signatures are YAML files: a list of software, each with what it sends and where that was measured. ' +
      'signatures/README.md has the format.',
  ],
  subcommands: [
    {
      name: 'validate',
      summary: 'Find everything that is wrong in signature files',
      description: ['Prints each problem with its file, line and column (exit code 1), or what there is.'],
      operands: [SIGNATURE_FILES],
      options: [],
      examples: [
        { command: 'signatures validate', description: 'Those that come with Gatehouse' },
        { command: 'signatures validate own/', description: 'All files of a folder, as one set' },
      ],
      run: validate,
    },
    {
      name: 'list',
      summary: 'Show the software that signatures know',
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
          name: 'q',
          value: 'TEXT',
          description: 'Only what has this in an id, name, alias, vendor or description',
        },
        { name: 'json', description: 'One JSON object a line, instead of a table' },
      ],
      examples: [
        { command: 'signatures list --kind agent', description: 'Every agent' },
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
    const files = await loadSignatureFiles(pathsOf(given))
    io.stdout.write(
      `${counts(
        files.flatMap((file) => file.list),
        files.length,
      )}\n`,
    )
    return 0
  } catch (error) {
    if (!(error instanceof ConfigFault)) throw error
    for (const { where, what } of error.problems) io.stderr.write(`${visible(`${where}: ${what}`)}\n`)
    io.stderr.write(`${many(error.problems.length, 'problem')}\n`)
    return 1
  }
}

async function list(given: Arguments, io: Io): Promise<ExitCode> {
  const wanted = (await loadSoftware(pathsOf(given)))
    .filter((software) => isWanted(software, given))
    .sort((a, b) => (a.id < b.id ? -1 : 1))
  if (given.flag('json')) {
    io.stdout.write(wanted.map((software) => `${JSON.stringify(summaryOf(software))}\n`).join(''))
    return 0
  }
  const columns = [
    { title: 'ID' },
    { title: 'NAME', flexible: true },
    { title: 'KIND' },
    { title: 'CATEGORY' },
    { title: 'SIGNATURES', align: 'right' },
  ] as const
  const rows = wanted.map(({ id, name, kind, category, signatures }) => {
    return [id, name, kind, category ?? '', String(signatures.length)]
  })
  io.stdout.write(`${renderTable(columns, rows, io.columns).join('\n')}\n`)
  return 0
}

function isWanted(software: Software, given: Arguments): boolean {
  const { id, name, aliases, vendor, description } = software
  const [kind, category] = [given.value('kind'), given.value('category')]
  const text = given.value('q')?.toLowerCase() ?? ''
  if (kind !== null && software.kind !== kind) return false
  if (category !== null && software.category !== category) return false
  return [id, name, ...aliases, vendor ?? '', description ?? ''].some((said) =>
    said.toLowerCase().includes(text),
  )
}

function summaryOf({ id, name, kind, category, vendor, aliases, signatures }: Software): object {
  return { id, name, kind, category, vendor, aliases, signatures: signatures.length }
}

function counts(list: readonly Software[], files: number): string {
  const kinds = SOFTWARE_KINDS.map((kind) => many(list.filter((each) => each.kind === kind).length, kind))
  const signatures = list.reduce((sum, each) => sum + each.signatures.length, 0)
  return `${list.length} software (${kinds.join(', ')}) with ${many(signatures, 'signature')} in ${many(files, 'file')}`
}
