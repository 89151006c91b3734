import type { Group } from '../../terminal/command.ts'
import { signDirectory } from './sign-directory.ts'
import { signKey } from './sign-key.ts'
import { signOne } from './sign-request.ts'

export const sign: Group = {
  name: 'sign',
  summary: 'Act as an agent that signs its requests (Web Bot Auth): keys, directory, requests',
  description: [
    'For trying out signed requests, and for making the keys that a gateway signs with (settings "signing"). An agent is identified by the URL of its key directory, which "sign directory --serve" can serve.',
  ],
  subcommands: [signKey, signDirectory, signOne],
}
