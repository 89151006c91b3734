import { FINGERPRINT_TYPES, type Signature } from '../../classify/known/signature.ts'
import type { Software } from '../../classify/known/software.ts'
import { signatureDocument, softwareDocument } from '../../classify/known/software-document.ts'
import { Fault } from '../../shared/fault.ts'
import { USAGE } from '../../terminal/arguments.ts'
import type { CommandAction, Arguments, ExitCode } from '../../terminal/command.ts'
import type { Io } from '../../terminal/io.ts'
import { yamlOf } from './signature-edits.ts'
import { loadSoftware } from '../../runtime/signatures/signature-files.ts'
import { FEED_OPTIONS, signedFeed, writeWhole } from './signatures-feed.ts'
import { pathsOf, SIGNATURE_FILES } from '../../runtime/signatures/signature-options.ts'

const FORMATS = ['yaml', 'json', 'jsonl'] as const

export const exportSignatures: CommandAction = {
  name: 'export',
  summary: 'Print all signatures as one document, or as a signed feed',
  description: [
    'Prints one list of software ordered by id, in the format that "signatures validate" checks. The same signatures give the same bytes, however they are split into files.',
    'With --format jsonl it prints a long list with one fingerprint a line, which a gateway can read without loading it into memory.',
    'With --sign it writes a feed, to be served over https. Gateways with this feed in their settings accept it if its version is higher than the last one. To change keys, sign with both: --sign OLD --sign NEW.',
  ],
  operands: [SIGNATURE_FILES],
  options: [
    { name: 'format', value: 'FORMAT', description: 'The output format', choices: FORMATS, default: 'yaml' },
    ...FEED_OPTIONS,
    {
      name: 'output',
      value: 'FILE',
      description: 'Write to this file, atomically, instead of printing',
    },
  ],
  examples: [
    { command: 'signatures export > all.yaml', description: 'All signatures in one file' },
    {
      command: 'signatures export own/ --sign feed.key --name acme --output acme.json',
      description: 'Your own feed',
    },
  ],
  run,
}

async function run(given: Arguments, io: Io): Promise<ExitCode> {
  const isFeed = given.values('sign').length > 0
  for (const option of FEED_OPTIONS)
    if (!isFeed && given.value(option.name) !== null)
      throw new Fault(USAGE, `--${option.name} is of a feed; --sign is missing`)
  const list = await loadSoftware(pathsOf(given))
  const format = FORMATS.find((name) => name === given.value('format')) ?? 'yaml'
  const { text, summary } = isFeed
    ? await signedFeed(list, given, io)
    : { text: exported(list, format), summary: null }
  const output = given.value('output')
  if (output === null) io.stdout.write(text)
  else {
    await writeWhole(output, text)
    if (summary !== null) io.stdout.write(`${summary}\n`)
  }
  return 0
}

export function exported(list: readonly Software[], format: (typeof FORMATS)[number]): string {
  const sorted = [...list].sort((a, b) => (a.id < b.id ? -1 : 1))
  if (format === 'jsonl') return sorted.map(linesOf).join('')
  const document = sorted.map(softwareDocument)
  return format === 'json' ? `${JSON.stringify(document, null, 2)}\n` : yamlOf(document)
}

/** The software, then a line for each of its fingerprints. */
function linesOf(software: Software): string {
  const isFingerprint = ({ type }: Signature) => FINGERPRINT_TYPES.some((each) => each === type)
  const signatures = software.signatures.filter((each) => !isFingerprint(each))
  const fingerprints = software.signatures.filter(isFingerprint)
  const documents = [
    softwareDocument({ ...software, signatures }),
    ...fingerprints.map((each) => ({ software: software.id, ...signatureDocument(each) })),
  ]
  return documents.map((document) => `${JSON.stringify(document)}\n`).join('')
}
