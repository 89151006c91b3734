import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DocumentServer } from '../../../identity/document-server.ts'
import type { Bench, Examples } from '../bench.ts'
import { exampleWith, GUIDE } from '../examples.ts'

const PAGE = `${GUIDE}/agent-identity.md`

export const examples: Examples = [
  ['"client_name": "An example"', 'test/manage/agent-identity.full.test.ts'],
  ['node agent.mjs', showsItsIdentity],
  ['// agent.mjs', 'test/manage/agent-identity.full.test.ts'],
]

async function showsItsIdentity({ t, folder, shell }: Bench, example: string): Promise<void> {
  const server = await DocumentServer.start(t)
  const agent = server.url('/identity.json', 'localhost')
  const document = exampleWith(PAGE, '"client_name": "An example"')
  writeFileSync(join(folder, 'agent.mjs'), exampleWith(PAGE, '// agent.mjs'))
  const lines = example.trim().split('\n')
  // Its key first, as the document has it.
  const { out } = await shell(
    `${lines[1]}\nopenssl pkey -in key.pem -pubout -outform DER | tail -c 32 | base64`,
  )
  const x = out.trim().replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
  const instead = [['https://agent.example/identity.json', agent]] as const
  server.serveJson(
    '/identity.json',
    JSON.parse(document.replace(instead[0][0], agent).replace('the public key', x)),
  )
  const answered = await shell(`${lines[0]}\n${lines[2]}`, { instead })
  assert.match(answered.out, /^200 \{"agents":/m)
}
