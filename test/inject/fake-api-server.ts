import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'
import { MutatingWebhookConfiguration } from 'kubernetes-models/admissionregistration.k8s.io/v1/MutatingWebhookConfiguration'
import { Secret } from 'kubernetes-models/v1/Secret'
import type { Test } from 'tap'
import { applyPatch } from './apply-patch.ts'
import { certificateFiles } from './certificates.ts'

type Object = Record<string, unknown> & { metadata: Record<string, unknown> & { name: string } }

/**
 * As much of an API server as `gatehouse inject` asks: Secrets and a MutatingWebhookConfiguration, with versions and
 * conflicts, for clients with the token. Objects are checked against the schemas of Kubernetes.
 */
export class FakeApiServer {
  readonly folder: string
  readonly objects = new Map<string, Object>()
  readonly asked: string[] = []
  /** Answers instead of the real ones; `undefined`: the real ones answer. */
  intercept: (method: string, path: string) => { status: number; body: string } | undefined = () => undefined
  /** How long a write takes, during which others read the old state. */
  pauseMs = 0
  token = 'token-1'
  port = 0
  #version = 100

  static async start(t: Test, folder: string): Promise<FakeApiServer> {
    const api = new FakeApiServer(folder)
    const { leaf, caText } = await certificateFiles(join(folder, 'api'))
    writeFileSync(join(folder, 'ca.crt'), caText)
    writeFileSync(join(folder, 'namespace'), 'gate\n')
    api.useToken('token-1')
    const server = createServer({ cert: leaf.certificate, key: leaf.key }, (request, response) => {
      api.#answer(request, response).catch((error: unknown) => {
        api.asked.push(`failed: ${error}`)
        say(response, 500, { kind: 'Status', reason: 'InternalError' })
      })
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    api.port = (server.address() as AddressInfo).port
    t.teardown(() => {
      server.close()
      server.closeAllConnections()
    })
    api.put(WEBHOOK, webhookConfiguration())
    return api
  }

  private constructor(folder: string) {
    this.folder = folder
  }

  get place() {
    return { host: '127.0.0.1', port: this.port, folder: this.folder }
  }

  /** From now on it is the only one; the file has it, too. */
  useToken(token: string): void {
    this.token = token
    writeFileSync(join(this.folder, 'token'), token)
  }

  put(path: string, object: Object): void {
    const metadata = { ...object.metadata, resourceVersion: String(++this.#version) }
    this.objects.set(path, { ...object, metadata })
  }

  data(path = SECRET): ReadonlyMap<string, string> {
    const data = (this.objects.get(path)?.['data'] ?? {}) as Record<string, string>
    return new Map(Object.entries(data).map(([name, text]) => [name, Buffer.from(text, 'base64').toString()]))
  }

  /** What the webhooks that call our Service are told to trust. */
  get bundles(): readonly string[] {
    const webhooks = this.objects.get(WEBHOOK)!['webhooks'] as readonly {
      clientConfig: { caBundle?: string }
    }[]
    return webhooks.map(({ clientConfig }) => Buffer.from(clientConfig.caBundle ?? '', 'base64').toString())
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '', headers } = request
    const text = (await buffer(request)).toString()
    this.asked.push(`${method} ${url}`)
    const instead = this.intercept(method, url)
    if (instead !== undefined) return void response.writeHead(instead.status).end(instead.body)
    if (headers.authorization !== `Bearer ${this.token}`)
      return say(response, 401, { kind: 'Status', reason: 'Unauthorized', message: 'Unauthorized' })
    if (method !== 'GET') await wait(this.pauseMs, undefined, { ref: false })
    const body = method === 'GET' ? null : JSON.parse(text)
    const name = method === 'POST' ? `${url}/${body.metadata.name}` : url
    const kept = this.objects.get(name)
    if (method === 'POST') {
      assert.equal(headers['content-type'], 'application/json')
      if (kept !== undefined) return say(response, 409, { kind: 'Status', reason: 'AlreadyExists' })
      new Secret(body).validate()
      this.put(name, body)
      return say(response, 201, this.objects.get(name)!)
    }
    if (kept === undefined) return say(response, 404, { kind: 'Status', reason: 'NotFound' })
    if (method === 'GET') return say(response, 200, kept)
    const { resourceVersion } = kept.metadata
    if (method === 'PUT') {
      if (body.metadata.resourceVersion !== resourceVersion)
        return say(response, 409, { kind: 'Status', reason: 'Conflict' })
      new Secret(body).validate()
      this.put(name, body)
      return say(response, 200, this.objects.get(name)!)
    }
    assert.deepEqual([method, headers['content-type']], ['PATCH', 'application/json-patch+json'])
    let patched: Object
    try {
      patched = applyPatch(kept, body) as Object
    } catch {
      return say(response, 422, { kind: 'Status', reason: 'Invalid' })
    }
    new MutatingWebhookConfiguration(patched as never).validate()
    this.put(name, patched)
    return say(response, 200, this.objects.get(name)!)
  }
}

export const SECRET = '/api/v1/namespaces/gate/secrets/gatehouse-inject-certificate'
export const WEBHOOK = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/gatehouse-inject'

/** Two webhooks: the second one calls another service. */
function webhookConfiguration(): Object {
  const webhook = (name: string, service: string) => ({
    name,
    clientConfig: { service: { name: service, namespace: 'gate', path: '/mutate', port: 443 } },
    rules: [{ operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['pods'] }],
    sideEffects: 'None',
    admissionReviewVersions: ['v1'],
  })
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'MutatingWebhookConfiguration',
    metadata: { name: 'gatehouse-inject' },
    webhooks: [webhook('inject.gatehouse.dev', 'gatehouse-inject'), webhook('other.example.test', 'other')],
  }
}

function say(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
}
