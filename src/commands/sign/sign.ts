import type { Group } from '../../terminal/command.ts'
import { signDirectory } from './sign-directory.ts'
import { signKey } from './sign-key.ts'
import { signOne } from './sign-request.ts'

export const sign: Group = {
  name: 'sign',
  summary: 'Act as an agent that signs its requests (Web Bot Auth): keys, directory, requests',
  description: [
    'To try out how signed requests are taken, and to make the keys that a gateway signs with itself (settings "signing"). ' +
      'The agent is where its keys are: a URL, at which "sign directory --serve" can show them.',
  ],
  subcommands: [signKey, signDirectory, signOne],
}
