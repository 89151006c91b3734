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
  ['apps create store', makesAKeyOfATeam],
  ['{"quota"', setsAQuota],
  ['/policy/explain', triesAPolicy],
  ['# team.yaml', ({ folder }, example) => writeFileSync(join(folder, 'team.yaml'), example)],
  ['apps apply team.yaml', appliesPolicies],
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

async function makesAKeyOfATeam({ shell }: Bench, example: string): Promise<void> {
  const { out } = await shell(example)
  assert.match(out, /^store\n\{.*"apps":\["store"\]/)
}

async function setsAQuota({ shell }: Bench, example: string): Promise<void> {
  const { json } = await shell(example)
  assert.deepEqual([json[0].id, json[0].quota], ['store', { minute: 600, day: 100_000 }])
}

async function triesAPolicy({ shell }: Bench, example: string): Promise<void> {
  const { json } = await shell(example)
  const [explained, preview] = json
  assert.deepEqual(explained.decision, { rule: 'carts', layer: 'app', action: 'block', would_have: null })
  assert.deepEqual([explained.app, preview.app, preview.sightings], ['store', 'store', 0])
}

async function appliesPolicies({ shell }: Bench, example: string): Promise<void> {
  const { out } = await shell(example)
  assert.match(out, /^~ docs, policy\n {4}\+ rule "no training": /m)
  assert.match(out, /^~ default, policy\n {4}\+ otherwise: "block"$/m)
  assert.match(out, /^1 to create, 0 to change, 0 to delete, 2 policies to change$/m)
  assert.match(out, /^app {6}docs$/m)
  assert.match(out, /^block, by rule "no training" \(app\)$/m)
}
