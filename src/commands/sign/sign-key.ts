import { makeSigningKey, SIGNING_ALGORITHMS, type SigningKey } from '../../identity/keys/signing-key.ts'
import type { CommandAction, Arguments, ExitCode } from '../../terminal/command.ts'
import type { Io } from '../../terminal/io.ts'
import { JSON_OPTION, printJson } from '../../terminal/json-option.ts'
import { makeKeyFile, replaceKeyFile, signingKeysIn } from '../../runtime/signing-key-file.ts'

export const signKey: CommandAction = {
  name: 'key',
  summary: 'Make a signing key in a new file',
  description: [
    'FILE is a JWK Set with the private key, readable only by its owner. Prints the thumbprint, which identifies the key. With --add, puts a new key in front of those in an existing file: the new key signs from now on, and the others stay in the directory until you remove them from the file.',
  ],
  operands: [{ name: 'FILE', description: 'The file to write; an existing one only with --add' }],
  options: [
    {
      name: 'algorithm',
      value: 'NAME',
      description: 'The signature algorithm',
      choices: SIGNING_ALGORITHMS,
      default: 'ed25519',
    },
    { name: 'add', description: 'Add it in front of the keys in the file' },
    JSON_OPTION,
  ],
  examples: [
    { command: 'sign key agent.jwk', description: 'Ed25519' },
    { command: 'sign key --add signing.jwk', description: 'Rotate to another key' },
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
