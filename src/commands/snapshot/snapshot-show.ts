import { allRules } from '../../policy/policy.ts'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { KnowledgeReader, softwareOf } from '../../plane/signature-set.ts'
import { parseSnapshot, type SnapshotDocument } from '../../plane/snapshot.ts'
import { readSnapshotFile } from '../../plane/snapshot-file.ts'
import { unpackSnapshot } from '../../plane/snapshot-package.ts'
import type { CommandAction, Arguments, ExitCode } from '../../terminal/command.ts'
import type { Io } from '../../terminal/io.ts'
import { JSON_OPTION, printJson } from '../../terminal/json-option.ts'

export const showSnapshot: CommandAction = {
  name: 'show',
  summary: 'Check a Snapshot file and show its contents',
  description: [
    'Checks the file as a proxy checks bus.bootstrap_file: compares the checksum, compiles the policy, opens the index of ' +
      'signatures. If the file is unusable, prints the reason and exits with code 1.',
  ],
  operands: [{ name: 'FILE', description: 'Written by "snapshot export"' }],
  options: [{ ...JSON_OPTION, description: 'Print JSON, with the policy' }],
  examples: [{ command: 'snapshot show fleet.snapshot', description: 'Before you mount it' }],
  run,
}

async function run(given: Arguments, io: Io): Promise<ExitCode> {
  const path = given.operands[0]!
  const file = await readSnapshotFile(path)
  const { rules, software, apps, appPolicies } = await contentOf(file.package)
  const summary = summaryOf(file.document, file.digest, file.package.length)
  if (given.flag('json')) {
    const policies = appPolicies.map(({ app, document }) => ({ app, policy: JSON.parse(document) }))
    const { policy } = file.document
    printJson(io, { file: path, ...summary, software, policy, apps, app_policies: policies })
    return 0
  }
  const lines = [
    ['Snapshot', String(summary.number)],
    ['Made at', summary.made_at],
    ['Policy', `${rules} rules`],
    ['Apps', `${apps.length} defined, ${appPolicies.length} with a policy`],
    ['Signatures', software === null ? 'none' : `of ${software} agents, browsers and tools`],
    ['Hash', summary.hash],
    ['SHA-256', summary.digest],
  ]
  for (const [name, text] of lines) io.stdout.write(`${name!.padEnd(NAME_WIDTH)}${text}\n`)
  return 0
}

interface SnapshotSummary {
  readonly number: number
  readonly hash: string
  readonly made_at: string
  readonly digest: string
  readonly bytes: number
}

export function summaryOf(document: SnapshotDocument, digest: string, bytes: number): SnapshotSummary {
  const { number, hash, madeAtMs } = document
  return { number, hash, made_at: new Date(madeAtMs).toISOString(), digest, bytes }
}

export function describe({ number, made_at, bytes }: SnapshotSummary): string {
  return `Snapshot ${number} of ${made_at}, ${bytes.toLocaleString('en')} bytes`
}

interface Content extends Required<Pick<SnapshotDocument, 'apps' | 'appPolicies'>> {
  readonly rules: number
  /** `null`: without signatures. */
  readonly software: number | null
}

async function contentOf(whole: Buffer): Promise<Content> {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-snapshot-'))
  try {
    const document = await unpackSnapshot(whole, folder, true)
    const rules = allRules(parseSnapshot(document).policy).length
    const { signatures, apps = [], appPolicies = [] } = document
    if (signatures === null) return { rules, software: null, apps, appPolicies }
    await new KnowledgeReader().read(signatures)
    return { rules, software: (await softwareOf(signatures)).length, apps, appPolicies }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const NAME_WIDTH = 12
