import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { test } from 'tap'
import { shownPath, shownUserAgent } from '../../../src/plane/privacy/shown-path.ts'
import { ANY_CHARACTER } from '../../any-character.ts'

test('paths that people write are shown as they are', async () => {
  for (const path of [
    ...['/', '', '/a/1', '/index.html', '/robots.txt', '/user/settings', '/keys/list', '/@anna/posts', '/x/'],
    ...['/blog/2026/11/21/how-to-write-a-very-long-title-about-agents', '/2026-11-26', '/shop/item-123456'],
    ...['/products/iPhone-15-Pro-Max-256GB', '/docs/GettingStartedWithTypeScript', '/v1/chat/completions'],
    ...['/wp-content/themes/twentytwentyfour/style.css', '/static/js/main.chunk.js', '/en-US/firefox/addon/'],
    ...['/javascripts/jquery-3.7.1.min.js', '/.well-known/oauth-protected-resource', '/%C3%BCber/uns'],
    ...[
      '/otp/verify',
      '/reset/password/new',
      '/token/refresh',
      '/confirm-email/sent',
      '/v1/keys/',
      '/users/42',
    ],
    ...['/wiki/Donaudampfschifffahrtsgesellschaft', '/node_modules/react_jsx-dev-runtime.js', '/a;b'],
  ])
    assert.equal(shownPath(path), path)
})

test('segments that look like secrets or name a person are redacted', async () => {
  for (const [path, shown] of [
    ['/reset/a1b2c3/done', '/reset/[redacted]/done'],
    ['/reset/MQ/cbx3ep', '/reset/[redacted]/[redacted]'],
    ['/otp/1234', '/otp/[redacted]'],
    ['/OTP/12345;v=1', '/OTP/[redacted];v=[redacted]'],
    ['/otp/x', '/otp/[redacted]'],
    ['/otp/qwxz', '/otp/[redacted]'],
    ['/otp/verify/QWXZ', '/otp/verify/[redacted]'],
    ['/otp%2F1234', '/[redacted]'],
    ['/%6ftp/1234', '/%6ftp/[redacted]'],
    ['/reset_password/v1/email/ab12', '/reset_password/v1/email/[redacted]'],
    ['/magic-link/Ab1', '/magic-link/[redacted]'],
    ['/MagicLink/ab', '/MagicLink/[redacted]'],
    ['/invite/WDJB-MJHT', '/invite/[redacted]'],
    ['/verify/anna/1234', '/verify/[redacted]/[redacted]'],
    ['/users/anna42', '/users/[redacted]'],
    ['/users/anna%40example.com', '/users/[redacted]'],
    ['/users/anna%2540example.com', '/users/[redacted]'],
    ['/users/anna%252540example.com', '/users/[redacted]'],
    ['/u/anna@example.com/x', '/u/[redacted]/x'],
    ['/lookup/203.0.113.9', '/lookup/[redacted]'],
    ['/lookup/203.0.113.9:80', '/lookup/[redacted]'],
    ['/lookup/from-203.0.113.9-x', '/lookup/[redacted]'],
    ['/lookup/2001:db8::1', '/lookup/[redacted]'],
    ['/lookup/[2001:db8::1]:80', '/lookup/[redacted]'],
    ['/a;jsessionid=1/b', '/a;jsessionid=[redacted]/b'],
    ['/a;anna@example.com=1', '/a;[redacted]'],
    ['/token=x', '/token=[redacted]'],
    ['/x%3Dy', '/x=[redacted]'],
    ['/call/+49-151-2345678', '/call/[redacted]'],
    ['/orders/4915112345678', '/orders/[redacted]'],
    ['/x/eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl', '/x/[redacted]'],
    ['/x/AKIAIOSFODNN7EXAMPLE', '/x/[redacted]'],
    ['/x/ghp_aaaaaaaaaaaaaaaaaaaa', '/x/[redacted]'],
    ['/x/%zz', '/x/[redacted]'],
    ['/x/%25252541', '/x/[redacted]'],
    ['/x?token=abc', '/x'],
    ['/x#access_token=abc', '/x'],
  ] as const)
    assert.equal(shownPath(path), shown, path)
})

test('of five thousand random tokens of each common form, fewer than one in forty is shown', async () => {
  const forms: Readonly<Record<string, () => string>> = {
    uuid: randomUUID,
    hex: () => randomBytes(8).toString('hex'),
    base32: () => BigInt(`0x1${randomBytes(16).toString('hex')}`).toString(32),
    base36: () => BigInt(`0x1${randomBytes(16).toString('hex')}`).toString(36),
    base64url16: () => randomBytes(12).toString('base64url'),
    base64url22: () => randomBytes(16).toString('base64url'),
    base64url43: () => randomBytes(32).toString('base64url'),
  }
  for (const [name, make] of Object.entries(forms)) {
    let shown = 0
    for (let time = 0; time < TOKENS; time++) {
      const token = make()
      if (shownPath(`/x/${token}/y`).includes(token)) shown++
    }
    assert.ok(shown < TOKENS / 40, `${name}: ${shown}`)
  }
})

test('a User-Agent keeps what names software and its operator', async () => {
  for (const userAgent of [
    'Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)',
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36',
    'Mozilla/5.0 (iPhone; CPU iPhone OS 17_4_1 like Mac OS X) AppleWebKit/605.1.15 Version/17.4.1 Mobile/15E148',
    'ClaudeBot/1.0; +claudebot@anthropic.com',
    'OpenAI/Python 1.55.0',
  ])
    assert.equal(shownUserAgent(userAgent), userAgent)
  assert.equal(shownUserAgent('App/1 device/550e8400-e29b-41d4-a716-446655440000'), 'App/1 device/[redacted]')
  assert.equal(shownUserAgent('App/1 eyJhbGciOiJIUzI1NiJ9.x'), 'App/1 [redacted].x')
})

test('any text is shown at once, without an exception, and shown once more it is the same', async () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 1_024, unit: ANY_CHARACTER }), (text) => {
      const shown = shownPath(text)
      assert.equal(shownPath(shown), shown)
      assert.equal(typeof shownUserAgent(text), 'string')
    }),
    { numRuns: 2_000 },
  )
  for (const piece of ['%25', '%', 'a=', ';', '/', '1.', '@', 'aB', '9', ' (', 'a%40'])
    for (const repeat of [1, 500, 100_000]) {
      const startMs = performance.now()
      shownPath(`/${piece.repeat(repeat)}`)
      shownUserAgent(piece.repeat(repeat))
      assert.ok(performance.now() - startMs < 1_000, `${repeat} times ${piece}`)
    }
})

/** One in 62 is shown, of the form with the most: with a thousand, two of a hundred runs failed. */
const TOKENS = 5_000
