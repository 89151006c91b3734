import { FINGERPRINT_TYPES, type Signature } from '../../classify/known/signature.ts'
import type { Software } from '../../classify/known/software.ts'
import { signatureDocument, softwareDocument } from '../../classify/known/software-document.ts'
import { Fault } from '../../shared/fault.ts'
import { USAGE } from '../../terminal/arguments.ts'
import type { Action, Arguments, ExitCode } from '../../terminal/command.ts'
import type { Io } from '../../terminal/io.ts'
import { yamlOf } from './signature-edits.ts'
import { loadSoftware } from '../../runtime/signatures/signature-files.ts'
import { FEED_OPTIONS, signedFeed, writeWhole } from './signatures-feed.ts'
import { pathsOf, SIGNATURE_FILES } from '../../runtime/signatures/signature-options.ts'

const FORMATS = ['yaml', 'json', 'jsonl'] as const

export const exportSignatures: Action = {
  name: 'export',
  summary: 'Print all signatures as one document, or as a signed feed',
  description: [
    'One list of software by id, which "signatures validate" accepts: the same signatures give the same bytes, ' +
      'however many files they were in.',
    'As jsonl it is a long list, one fingerprint a line: a gateway reads a million of them without holding them.',
    'With --sign it is a feed, for a server with https to hand out as it is. Gateways that have it among their feeds ' +
      'take it when its version is higher than that of the one before. While you change keys, sign with both: ' +
      '--sign OLD --sign NEW.',
  ],
  operands: [SIGNATURE_FILES],
  options: [
    { name: 'format', value: 'FORMAT', description: 'The form', choices: FORMATS, default: 'yaml' },
    ...FEED_OPTIONS,
    {
      name: 'output',
      value: 'FILE',
      description: 'Write it there, whole or not at all, instead of printing it',
    },
  ],
  examples: [
    { command: 'signatures export > all.yaml', description: 'To carry them elsewhere' },
    {
      command: 'signatures export own/ --sign feed.key --name acme --output acme.json',
      description: 'A feed of your own',
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
