import assert from 'node:assert/strict'
import { test } from 'tap'
import { interactionHash, wrongInFinishUri } from '../../src/manage/auth/gnap/finish.ts'
import { newSigner } from '../identity/signer.ts'
import type { Owner } from '../store/databases.ts'
import { type Continue, GnapClient, hashOfInteraction } from './gnap-client.ts'
import { TestManagement } from './management.ts'

async function begun(t: Owner) {
  const clock = { aheadMs: 0 }
  const nowMs = () => Date.now() + clock.aheadMs
  const manage = await TestManagement.start(t, { nowMs })
  const client = new GnapClient(manage.url, newSigner(), nowMs)
  const browse = async (url: string) => {
    const response = await fetch(url, { redirect: 'manual' })
    return { status: response.status, headers: response.headers, text: await response.text() }
  }
  const decide = (next: Continue, decision: 'approve' | 'deny', scopes?: readonly string[]) =>
    manage.ask('POST', `/v1/grants/${next.uri.split('/').at(-1)}/decide`, {
      decision,
      ...(scopes && { scopes }),
    })
  return { manage, client, clock, browse, decide }
}

const DISPLAY = { name: 'A <b>robot</b>', uri: 'https://client.example/' }

function asking(client: GnapClient, finish?: Readonly<Record<string, unknown>>) {
  return {
    client: { key: client.key, display: DISPLAY, class_id: 'x' },
    interact: { start: ['redirect', { mode: 'other' }], ...(finish && { finish }) },
    subject: { sub_id_formats: ['opaque'] },
  }
}

test('the hash is that of the specification (RFC 9635 §4.2.3)', async () => {
  const finish = { nonce: 'VJLO6A4CATR0KRO', serverNonce: 'MBDOFXG4Y5CVJCX821LH', hashMethod: 'sha-256' }
  const hash = (hashMethod: string) =>
    interactionHash({ ...finish, hashMethod }, '4IFWWIKYB2PQ6U56NL1', 'https://server.example.com/tx')
  assert.equal(hash('sha-256'), 'x-gguKWTj8rQf7d7i3w3UhzvuJ5bpOlKyAlVpLxBffY')
  assert.equal(
    hash('sha3-512'),
    'pyUkVJSmpqSJMaDYsk5G8WCvgY91l-agUPe1wgn-cc5rUtN69gPI2-S_s-Eswed8iB4PJ_a5Hg6DNi7qGgKwSQ',
  )
})

test('where a browser may be sent back to', async () => {
  for (const uri of [
    'https://client.example/',
    'https://client.example:8443/back?a=b&c',
    'http://127.0.0.1:7000/back',
    'http://localhost/',
    'http://[::1]:7000/',
    'https://client.example/a@b?c=@',
  ])
    assert.equal(wrongInFinishUri(uri), null, uri)
})

for (const method of ['sha-256', 'sha3-512'] as const)
  test(`a key that nobody knows is approved, and the browser sent back (${method})`, async (t) => {
    const { manage, client, browse, decide } = await begun(t)
    const uri = 'https://client.example/back?state=a%20b'
    const finish = { method: 'redirect', uri, nonce: 'client nonce', hash_method: method }
    const { status, body } = await client.grant(['read', 'detect', 'fly'], asking(client, finish))
    assert.equal(status, 200, JSON.stringify(body))
    assert.deepEqual([body.continue.wait, body.interact.expires_in, body.access_token], [5, 3600, undefined])

    const page = await browse(body.interact.redirect)
    assert.equal(page.status, 200)
    assert.match(page.text, /A &lt;b&gt;robot&lt;\/b&gt;/)
    assert.match(page.text, /https:\/\/client\.example</)
    assert.ok(page.text.includes(client.thumbprint))
    assert.equal(page.headers.get('refresh'), '5')
    assert.match(page.headers.get('content-security-policy')!, /default-src 'none'.*frame-ancestors 'none'/)
    assert.equal(page.headers.get('referrer-policy'), 'no-referrer')

    const { body: listed } = await manage.ask('GET', '/v1/grants')
    const [{ created_at, expires_at, ...grant }] = listed.grants
    assert.deepEqual(grant, {
      ...{ id: body.continue.uri.split('/').at(-1), name: DISPLAY.name, uri: DISPLAY.uri },
      ...{ thumbprint: client.thumbprint, scopes: ['read', 'detect'], bearer: false, finish_uri: uri },
      ...{ state: 'waiting', decided_by: null },
    })
    assert.equal(Date.parse(expires_at) - Date.parse(created_at), 3_600_000)
    const decided = await decide(body.continue, 'approve', ['detect'])
    assert.deepEqual([decided.status, decided.body.scopes], [200, ['detect']])
    assert.equal((await manage.ask('GET', '/v1/grants')).body.total, 0)
    const { body: approved } = await manage.ask('GET', '/v1/grants?state=approved')
    assert.deepEqual([approved.total, approved.grants[0].scopes], [1, ['detect']])
    assert.match(approved.grants[0].decided_by, /^key_/)

    const sent = await browse(body.interact.redirect)
    assert.equal(sent.status, 303)
    const back = new URL(sent.headers.get('location')!)
    assert.ok(back.href.startsWith(`${uri}&hash=`))
    const reference = back.searchParams.get('interact_ref')!
    const parts = [finish.nonce, body.interact.finish, reference, `${manage.url}/gnap/grant`] as const
    const node = method === 'sha-256' ? 'sha256' : 'sha3-512'
    assert.equal(back.searchParams.get('hash'), hashOfInteraction(node, parts))
    assert.notEqual(
      hashOfInteraction(node, ['another nonce', ...parts.slice(1)] as never),
      back.searchParams.get('hash'),
    )

    const granted = await client.continue(body.continue, reference)
    assert.equal(granted.status, 200, JSON.stringify(granted.body))
    assert.deepEqual(granted.body.access_token.access, [{ type: 'service-api', actions: ['detect'] }])
    assert.equal(granted.body.continue, undefined)
    const asked = await client.ask('GET', '/v1/agents', granted.body.access_token)
    assert.deepEqual([asked.status, asked.body.code], [403, 'insufficient_scope'])
    const again = await client.continue(body.continue, reference)
    assert.deepEqual([again.status, again.body.error.code], [401, 'invalid_continuation'])
    assert.equal((await browse(body.interact.redirect)).status, 404)
    assert.deepEqual(manage.failures, [])
  })

test('who is sent back has to bring what it was sent back with, and what it brings has to be right', async (t) => {
  const { client, clock, browse, decide } = await begun(t)
  const finish = { method: 'redirect', uri: 'http://127.0.0.1:7000/', nonce: 'n' }
  const { body } = await client.grant(['read'], asking(client, finish))
  const other = (await client.grant(['read'], asking(client, finish))).body
  const refused = [400, 'invalid_interaction']
  const early = await client.continue(body.continue, 'guess')
  assert.deepEqual([early.status, early.body.error.code], refused)
  await decide(body.continue, 'approve')
  await decide(other.continue, 'approve')
  const referenceOf = async (url: string) =>
    new URL((await browse(url)).headers.get('location')!).searchParams.get('interact_ref')!
  const foreign = await referenceOf(other.interact.redirect)
  for (const reference of ['guess', '', foreign]) {
    const wrong = await client.continue(body.continue, reference)
    assert.deepEqual([wrong.status, wrong.body.error.code], refused)
  }
  // It is approved, and whoever has the page open has not come back.
  clock.aheadMs = 5_000
  const polled = await client.continue(body.continue)
  assert.deepEqual([polled.status, polled.body.access_token], [200, undefined])
  const reference = await referenceOf(body.interact.redirect)
  const last = await referenceOf(body.interact.redirect)
  assert.equal((await client.continue(polled.body.continue, reference)).status, 400)
  assert.equal((await client.continue(polled.body.continue, last)).status, 200)
})

test('a client that cannot be sent back to asks again, and not too fast', async (t) => {
  const { client, clock, browse, decide } = await begun(t)
  const { body } = await client.grant(['read'], asking(client))
  assert.equal(body.interact.finish, undefined)
  const fast = await client.continue(body.continue)
  assert.deepEqual([fast.status, fast.body.error.code], [429, 'too_fast'])
  assert.ok(['4', '5'].includes(fast.headers.get('retry-after')!))
  clock.aheadMs += 5_000
  const waiting = await client.continue(body.continue)
  assert.deepEqual(Object.keys(waiting.body), ['continue'])
  assert.notEqual(waiting.body.continue.access_token.value, body.continue.access_token.value)
  const used = await client.continue(body.continue)
  assert.deepEqual([used.status, used.body.error.code], [401, 'invalid_continuation'])
  await decide(body.continue, 'approve')
  assert.match((await browse(body.interact.redirect)).text, /approved/)
  assert.equal((await client.continue(waiting.body.continue)).body.error.code, 'too_fast')
  clock.aheadMs += 5_000
  const { body: granted } = await client.continue(waiting.body.continue)
  assert.equal((await client.ask('GET', '/v1/agents', granted.access_token)).status, 200)
  // What was approved is over a day later, however often it is renewed.
  clock.aheadMs += 86_000_000
  const renewed = await client.rotate(granted.access_token)
  assert.equal(renewed.status, 200, JSON.stringify(renewed.body))
  clock.aheadMs += 1_000_000
  assert.equal((await client.rotate(renewed.body.access_token)).body.error.code, 'invalid_rotation')
})

for (const finish of [undefined, { method: 'redirect', uri: 'https://client.example/', nonce: 'n' }])
  test(`who is denied is told so, ${finish ? 'and the browser sent back' : 'when it asks'}`, async (t) => {
    const { manage, client, clock, browse, decide } = await begun(t)
    const { body } = await client.grant(['read'], asking(client, finish))
    assert.equal((await decide(body.continue, 'deny')).status, 200)
    assert.equal((await decide(body.continue, 'approve')).status, 409)
    assert.equal((await browse(body.interact.redirect)).status, finish ? 303 : 200)
    clock.aheadMs = 5_000
    const denied = await client.continue(body.continue)
    assert.deepEqual([denied.status, denied.body.error.code], [403, 'user_denied'])
    assert.equal((await client.continue(body.continue)).body.error.code, 'invalid_continuation')
    const { body: audit } = await manage.ask('GET', '/v1/audit?action=decideGrant')
    assert.deepEqual([audit.total, audit.audit[0].detail.decision], [1, 'deny'])
  })

test('of two clients that continue at once one gets the tokens', async (t) => {
  const { client, clock, decide } = await begun(t)
  const { body } = await client.grant(['read'], asking(client))
  await decide(body.continue, 'approve')
  clock.aheadMs = 5_000
  const answers = await Promise.all(Array.from({ length: 6 }, () => client.continue(body.continue)))
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 401, 401, 401, 401, 401])
})

test('nobody waits for ever', async (t) => {
  const { manage, client, clock, browse, decide } = await begun(t)
  const { body } = await client.grant(['read'], asking(client))
  clock.aheadMs = 3_600_000
  assert.equal((await browse(body.interact.redirect)).status, 404)
  assert.equal((await client.continue(body.continue)).body.error.code, 'invalid_continuation')
  assert.equal((await decide(body.continue, 'approve')).status, 404)
  assert.equal((await manage.ask('GET', '/v1/grants')).body.total, 0)
})

test('what is decided is no more than what is asked for', async (t) => {
  const { manage, client, decide } = await begun(t)
  const { body } = await client.grant(['read', 'detect'], asking(client))
  for (const scopes of [['admin'], ['read', 'write'], []])
    assert.equal((await decide(body.continue, 'approve', scopes)).status, 400)
  const writer = { authorization: `Bearer ${await manage.key({ scopes: ['read', 'write'] })}` }
  assert.equal((await manage.ask('GET', '/v1/grants', undefined, writer)).status, 403)
  assert.equal((await decide(body.continue, 'approve')).body.scopes.join(), 'read,detect')
})
