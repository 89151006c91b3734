import { makeSigningKey, SIGNING_ALGORITHMS, type SigningKey } from '../../identity/keys/signing-key.ts'
import type { Action, Arguments, ExitCode } from '../../terminal/command.ts'
import type { Io } from '../../terminal/io.ts'
import { JSON_OPTION, printJson } from '../../terminal/json-option.ts'
import { makeKeyFile, replaceKeyFile, signingKeysIn } from '../../runtime/signing-key-file.ts'

export const signKey: Action = {
  name: 'key',
  summary: 'Make a key to sign with, in a file of its own',
  description: [
    'FILE is a JWK Set with the private key, for its owner alone. The thumbprint, by which others know the key, is ' +
      'printed. With --add the file has a key already: the new one signs from now on, and the others stay in the directory ' +
      'until they are taken out of the file.',
  ],
  operands: [{ name: 'FILE', description: 'Where it is kept; never one that is there, but for --add' }],
  options: [
    {
      name: 'algorithm',
      value: 'NAME',
      description: 'What it signs with',
      choices: SIGNING_ALGORITHMS,
      default: 'ed25519',
    },
    { name: 'add', description: 'Put it in front of those that are in the file' },
    JSON_OPTION,
  ],
  examples: [
    { command: 'sign key agent.jwk', description: 'Ed25519' },
    { command: 'sign key --add signing.jwk', description: 'To change to another key' },
  ],
  run,
}

async function run(given: Arguments, io: Io): Promise<ExitCode> {
  const file = given.operands[0]!
  const key = makeSigningKey(given.value('algorithm') as (typeof SIGNING_ALGORITHMS)[number])
  const keys: readonly SigningKey[] = given.flag('add') ? [key, ...(await signingKeysIn(file))] : [key]
  await (given.flag('add') ? replaceKeyFile(file, keys) : makeKeyFile(file, keys))
  if (given.flag('json')) printJson(io, { file, thumbprint: key.thumbprint, keys: keys.length })
  else io.stdout.write(`${key.thumbprint}\n`)
  return 0
}
