import { createHash, createHmac } from 'node:crypto'

export interface AwsCredentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  /** Of temporary credentials; `null`: they are permanent. */
  readonly sessionToken: string | null
}

/** What a signature is valid for. */
export interface SigningScope {
  readonly region: string
  readonly service: string
  readonly atMs: number
}

export interface RequestToSign {
  readonly method: string
  /** With its path and query encoded as they are sent. */
  readonly url: URL
  /** By name in lower case. All are signed. */
  readonly headers: Readonly<Record<string, string>>
  /** SHA-256 of the body, in hexadecimal. */
  readonly bodyHash: string
}

/**
 * The headers that sign a request: AWS Signature Version 4
 * (https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html). The path is not encoded again, as S3
 * wants it.
 */
export function signatureHeaders(
  { method, url, headers, bodyHash }: RequestToSign,
  { accessKeyId, secretAccessKey, sessionToken }: AwsCredentials,
  { region, service, atMs }: SigningScope,
): Record<string, string> {
  const time = new Date(atMs).toISOString().replace(/[-:]|\.\d+/g, '')
  const day = time.slice(0, 8)
  const added: Record<string, string> = {
    'x-amz-date': time,
    ...(sessionToken === null ? {} : { 'x-amz-security-token': sessionToken }),
  }
  const signed = Object.entries({ ...headers, ...added, host: url.host })
    .map(([name, value]) => [name, value.trim().replace(/ +/g, ' ')] as const)
    .sort(([one], [other]) => (one < other ? -1 : 1))
  const names = signed.map(([name]) => name).join(';')
  const canonical = [
    method,
    url.pathname,
    canonicalQuery(url),
    ...signed.map(([name, value]) => `${name}:${value}`),
    '',
    names,
    bodyHash,
  ].join('\n')
  const scope = `${day}/${region}/${service}/aws4_request`
  const key = [day, region, service, 'aws4_request'].reduce<Buffer | string>(hmac, `AWS4${secretAccessKey}`)
  const text = ['AWS4-HMAC-SHA256', time, scope, sha256(canonical)].join('\n')
  const signature = hmac(key, text).toString('hex')
  const authorization = `AWS4-HMAC-SHA256 Credential=${accessKeyId}/${scope}, SignedHeaders=${names}, Signature=${signature}`
  return { ...added, authorization }
}

/** A path as S3 encodes it: all characters but these, each by its bytes in UTF-8. */
export function encodedPath(path: string): string {
  return encodeURIComponent(path.toWellFormed())
    .replaceAll('%2F', '/')
    .replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
}

function canonicalQuery(url: URL): string {
  const parameters = url.search
    .slice(1)
    .split('&')
    .filter((each) => each !== '')
  const withValues = parameters.map((each) => (each.includes('=') ? each : `${each}=`))
  return withValues.sort().join('&')
}

function hmac(key: Buffer | string, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}

export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
