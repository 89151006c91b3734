import assert from 'node:assert/strict'
import { test } from 'tap'
import { encodedPath, sha256, signatureHeaders } from '../../src/manage/export/signature-v4.ts'

/** "Examples: Signature calculations" in the manual of S3: 2013-05-24, us-east-1. */
const EXAMPLES = [
  {
    name: 'GET object',
    method: 'GET',
    path: '/test.txt',
    headers: { range: 'bytes=0-9' },
    body: '',
    signature: 'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
  },
  {
    name: 'PUT object',
    method: 'PUT',
    path: '/test%24file.text',
    headers: { date: 'Fri, 24 May 2013 00:00:00 GMT', 'x-amz-storage-class': 'REDUCED_REDUNDANCY' },
    body: 'Welcome to Amazon S3.',
    signature: '98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd',
  },
  {
    name: 'GET bucket lifecycle',
    method: 'GET',
    path: '/?lifecycle',
    headers: {},
    body: '',
    signature: 'fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543',
  },
  {
    name: 'GET bucket (list objects)',
    method: 'GET',
    path: '/?max-keys=2&prefix=J',
    headers: {},
    body: '',
    signature: '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7',
  },
]

test('the examples of S3 have their published signatures', async () => {
  for (const { name, method, path, headers, body, signature } of EXAMPLES) {
    const bodyHash = sha256(body)
    const url = new URL(`https://examplebucket.s3.amazonaws.com${path}`)
    const all = { ...headers, 'x-amz-content-sha256': bodyHash }
    const made = signatureHeaders(
      { method, url, headers: all, bodyHash },
      {
        accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
        secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
        sessionToken: null,
      },
      { region: 'us-east-1', service: 's3', atMs: Date.UTC(2013, 4, 24) },
    )
    assert.equal(made['x-amz-date'], '20130524T000000Z', name)
    const names = Object.keys({ ...all, host: '', 'x-amz-date': '' }).sort()
    assert.equal(
      made['authorization'],
      `AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, SignedHeaders=${names.join(';')}, Signature=${signature}`,
      name,
    )
  }
})

test('cases of the test suite of Signature Version 4 have their published signatures', async () => {
  const cases = [
    ['/', '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31'],
    ['/?Param2=value2&Param1=value1', 'b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500'],
  ] as const
  for (const [path, signature] of cases) {
    const { authorization } = signatureHeaders(
      {
        method: 'GET',
        url: new URL(`https://example.amazonaws.com${path}`),
        headers: {},
        bodyHash: sha256(''),
      },
      {
        accessKeyId: 'AKIDEXAMPLE',
        secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
        sessionToken: null,
      },
      { region: 'us-east-1', service: 'service', atMs: Date.UTC(2015, 7, 30, 12, 36) },
    )
    assert.ok(authorization!.endsWith(`SignedHeaders=host;x-amz-date, Signature=${signature}`), path)
  }
})

test('a session token is signed, and the key of an object is encoded as S3 wants it', async () => {
  const made = signatureHeaders(
    { method: 'PUT', url: new URL('https://b.example/a'), headers: {}, bodyHash: sha256('') },
    { accessKeyId: 'A', secretAccessKey: 'S', sessionToken: 'T' },
    { region: 'r', service: 's3', atMs: 0 },
  )
  assert.equal(made['x-amz-security-token'], 'T')
  assert.match(made['authorization']!, /SignedHeaders=host;x-amz-date;x-amz-security-token,/)
  assert.equal(encodedPath("app=a/ü 'x'(1)*~.parquet"), 'app%3Da/%C3%BC%20%27x%27%281%29%2A~.parquet')
})
