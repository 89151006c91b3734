import type { Software } from '../classify/software.ts'
import { softwareDocument } from '../classify/software-document.ts'
import type { Action, Arguments, ExitCode } from './command.ts'
import type { Io } from './io.ts'
import { yamlOf } from './signature-edits.ts'
import { loadSoftware } from './signature-files.ts'
import { pathsOf, SIGNATURE_FILES } from './signature-options.ts'

export const exportSignatures: Action = {
  name: 'export',
  summary: 'Print all signatures as one document',
  description: [
    'One list of software by id, which "signatures validate" accepts: the same signatures give the same bytes, ' +
      'however many files they were in.',
  ],
  operands: [SIGNATURE_FILES],
  options: [
    { name: 'format', value: 'FORMAT', description: 'The form', choices: ['yaml', 'json'], default: 'yaml' },
  ],
  examples: [{ command: 'signatures export > all.yaml', description: 'To carry them elsewhere' }],
  run,
}

async function run(given: Arguments, io: Io): Promise<ExitCode> {
  const list = await loadSoftware(pathsOf(given))
  io.stdout.write(exported(list, given.value('format') === 'json' ? 'json' : 'yaml'))
  return 0
}

/** The text that is handed out: what signs an export signs these bytes. */
export function exported(list: readonly Software[], format: 'yaml' | 'json'): string {
  const document = [...list].sort((a, b) => (a.id < b.id ? -1 : 1)).map(softwareDocument)
  return format === 'json' ? `${JSON.stringify(document, null, 2)}\n` : yamlOf(document)
}
