import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { AppIndex } from '../../../../src/apps/app-index.ts'
import { parseConfig } from '../../../../src/config/config.ts'
import type { Bench, Examples } from '../bench.ts'

export const examples: Examples = [
  ['proxy:', findsTheApp],
  ['apps create wiki', appliesApps],
  ['/v1/apps/forum', changesApps],
]

async function findsTheApp({ folder, shell }: Bench, example: string): Promise<void> {
  writeFileSync(join(folder, 'apps.yaml'), example)
  const { out } = await shell('gatehouse check --config apps.yaml')
  assert.match(out, /shop\.example/)
  const { config } = parseConfig({ flags: {}, env: {}, file: { name: 'apps.yaml', text: example } })
  const index = new AppIndex(config.apps)
  const ids = ['shop.example', 'www.shop.example', 'blog.example', 'wiki.example'].map(
    (host) => index.appOf(host).id,
  )
  assert.deepEqual(ids, ['shop', 'shop', 'blog', 'default'])
}

async function appliesApps({ shell }: Bench, example: string): Promise<void> {
  const { out } = await shell(example)
  assert.deepEqual(out.trim().split('\n'), ['wiki', '0 to create, 0 to change, 0 to delete'])
}

async function changesApps({ shell }: Bench, example: string): Promise<void> {
  const { json } = await shell(example)
  const [{ apps }, created, changed] = json
  assert.deepEqual(
    apps.map(({ id }: { readonly id: string }) => id),
    ['wiki'],
  )
  assert.deepEqual(created.hosts, ['forum.example'])
  assert.deepEqual([changed.team, changed.labels], ['docs', ['beta']])
}
