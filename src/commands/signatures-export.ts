import type { Software } from '../classify/software.ts'
import { softwareDocument } from '../classify/software-document.ts'
import { Fault } from '../fault.ts'
import { USAGE } from './arguments.ts'
import type { Action, Arguments, ExitCode } from './command.ts'
import type { Io } from './io.ts'
import { yamlOf } from './signature-edits.ts'
import { loadSoftware } from './signature-files.ts'
import { FEED_OPTIONS, signedFeed, writeWhole } from './signatures-feed.ts'
import { pathsOf, SIGNATURE_FILES } from './signature-options.ts'

export const exportSignatures: Action = {
  name: 'export',
  summary: 'Print all signatures as one document, or as a signed feed',
  description: [
    'One list of software by id, which "signatures validate" accepts: the same signatures give the same bytes, ' +
      'however many files they were in.',
    'With --sign it is a feed, for a server with https to hand out as it is. Gateways that have it among their feeds ' +
      'take it when its version is higher than that of the one before. While you change keys, sign with both: ' +
      '--sign OLD --sign NEW.',
  ],
  operands: [SIGNATURE_FILES],
  options: [
    { name: 'format', value: 'FORMAT', description: 'The form', choices: ['yaml', 'json'], default: 'yaml' },
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
  const format = given.value('format') === 'json' ? 'json' : 'yaml'
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

export function exported(list: readonly Software[], format: 'yaml' | 'json'): string {
  const document = [...list].sort((a, b) => (a.id < b.id ? -1 : 1)).map(softwareDocument)
  return format === 'json' ? `${JSON.stringify(document, null, 2)}\n` : yamlOf(document)
}
