import assert from 'node:assert/strict'
import { symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Receiver } from '../../receiver.ts'
import type { Bench, Examples } from '../bench.ts'

export const examples: Examples = [
  ['hooks.example.com', postsWebhooks],
  ["from 'standardwebhooks'", verifiesAWebhook],
]

/** The delivery that the first example caused, for the second one to verify. */
let delivery: { readonly secret: string; readonly body: Buffer; readonly headers: object } | null = null

async function postsWebhooks({ t, shell }: Bench, example: string): Promise<void> {
  const receiver = await Receiver.start(t)
  const at = example.indexOf('curl -X POST')
  const made = await shell(example.slice(0, at), {
    instead: [['https://hooks.example.com/gatehouse', `${receiver.url}/gatehouse`]],
  })
  const { id, secret } = made.json[0].webhook ?? made.json[0]
  await shell(example.slice(at), { instead: [['whk_…', id]] })
  delivery = { secret, ...(await receiver.next()) }
}

async function verifiesAWebhook({ folder }: Bench, example: string): Promise<void> {
  const { secret, body, headers } = delivery!
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'))
  for (const library of ['standardwebhooks', 'svix']) {
    const file = join(folder, `${library}.mjs`)
    const verify = example.replace("'standardwebhooks'", `'${library}'`).replace('whsec_…', secret)
    writeFileSync(file, verify.replace('new Webhook', 'export const check = (body, headers) => new Webhook'))
    const { check } = await import(file)
    check(body.toString(), headers)
    assert.throws(() => check(`${body} `, headers))
  }
}
