import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Bench, Examples } from '../bench.ts'

export const examples: Examples = [
  ['# terms-policy.yaml', ({ folder }, example) => writeFileSync(join(folder, 'terms-policy.yaml'), example)],
  ['# own-robots.txt', ({ folder }, example) => writeFileSync(join(folder, 'own-robots.txt'), example)],
  ['publish robots', publishes],
  ['# terms.yaml', ({ folder }, example) => writeFileSync(join(folder, 'terms.yaml'), example)],
  ['--config terms.yaml', checks],
  ['check --robots', contradicts],
  ['/v1/policy/terms', asksTheApi],
]

async function publishes({ shell }: Bench, example: string): Promise<void> {
  const { out } = await shell(example)
  assert.match(out, /^Sitemap: https:\/\/shop\.example\/sitemap\.xml$/m)
  assert.match(out, /^User-agent: GPTBot$/m)
  assert.match(out, /^Disallow: \/cart$/m)
  assert.match(out, /^Content-Signal: search=yes, ai-input=yes, ai-train=no$/m)
  assert.match(out, /^\/ Content-Usage: train-ai=n, search=y$/m)
  assert.match(out, /<prohibits type="usage">ai-train<\/prohibits>/)
}

async function checks({ shell }: Bench, example: string): Promise<void> {
  assert.match((await shell(example)).out, /rsl_path: \/license\.xml/)
}

async function contradicts({ shell }: Bench, example: string): Promise<void> {
  const { out } = await shell(example)
  assert.match(out, /nothing forbids it, but the policy refuses \/ to AI2Bot, .* more/)
  assert.match(out, /own-robots\.txt:3: "Disallow: \/cart", but the policy lets .* have \/cart/)
  assert.match(out, /exit code 1/)
}

async function asksTheApi({ shell }: Bench, example: string): Promise<void> {
  const { json } = await shell(example)
  assert.match(json[0].robots, /^Disallow: \/cart$/m)
  assert.deepEqual([json[0].content_usage, json[0].unpublished], [[], []])
  assert.deepEqual(
    json[0].contradictions.map(({ kind, path, line }: Record<string, unknown>) => [kind, path, line]),
    [['let_in', '/cart', 2]],
  )
}
