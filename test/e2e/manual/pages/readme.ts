import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { testCa, testLeaf } from '../../../proxy/test-certificates.ts'
import { startProcess } from '../../gatehouse.ts'
import type { Bench, Examples } from '../bench.ts'

export const examples: Examples = [
  ['npm ci && npm start', 'test/commands/demo.test.ts'],
  ['npm ci && npm test', '.ci/run'],
  ['-- up --upstream', (bench) => assert.match(bench.gate.said(), /"message":"ready"/)],
  ['# gatehouse.yaml', (bench, example) => keeps(bench, 'gatehouse.yaml', example)],
  ['# policy.yaml', (bench, example) => keeps(bench, 'policy.yaml', example)],
  ['-- doctor --config', isLookedAtBefore],
]

/** With what stands elsewhere on this machine. */
function keeps({ folder, app }: Bench, name: string, example: string): void {
  const text = example
    .replace('0.0.0.0:443', '127.0.0.1:0')
    .replace('http://127.0.0.1:3000', app.url)
    .replaceAll('/etc/gatehouse', folder)
    .replace('/var/lib/gatehouse', join(folder, 'from-a-file'))
  writeFileSync(join(folder, name), text)
}

async function isLookedAtBefore({ t, folder, shell }: Bench, example: string): Promise<void> {
  const leaf = await testLeaf(await testCa(), ['localhost'])
  writeFileSync(join(folder, 'tls.crt'), leaf.certificate)
  writeFileSync(join(folder, 'tls.key'), leaf.key, { mode: 0o600 })
  const [check, doctor, up] = example.trim().split('\n') as [string, string, string]
  // What the variables of the bench say is said by the file here.
  const variables = {
    ...{ GATEHOUSE_PROXY_LISTEN: undefined, GATEHOUSE_DATA_DIR: undefined },
    GATEHOUSE_FETCH_ALLOW_PRIVATE_ADDRESSES: undefined,
    GATEHOUSE_WEBHOOKS_ALLOW_PRIVATE_ADDRESSES: undefined,
  }
  const { out, err } = await shell(check, { variables })
  assert.match(out, /policy\.yaml/)
  assert.equal(err, '')
  // No gateway runs yet: the findings depend on this machine.
  assert.match((await shell(`${doctor.replace(/ +#.*/, '')} || true`, { variables })).out, /certificate/i)
  const argv = up.split(' ')
  const gate = await startProcess(t, argv.slice(argv.indexOf('up')), {
    folder,
    variables: { GATEHOUSE_MANAGE_LISTEN: '127.0.0.1:0' },
  })
  assert.match(gate.said(), /"message":"ready"/)
  await gate.stop()
}
