import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'tap'
import {
  type Channel,
  type ChannelMessage,
  channelPair,
  LocalManageBus,
  LocalProxyBus,
} from '../../src/plane/local-bus.ts'
import { type BusUnderTest, busContract, sighting } from '../contract/bus.ts'

busContract('local bus, within a process', async () => {
  const manage = new LocalManageBus()
  return hung(manage, async () => {
    const [up, down] = channelPair().map(breakable)
    return { up: up!, down: down!, lose: async () => [up, down].map((channel) => channel!.break()) }
  })
})

busContract('local bus, over IPC', async () => {
  const manage = new LocalManageBus()
  const children: ChildProcess[] = []
  const bus = hung(manage, async () => {
    const child = fork(new URL('echo.ts', import.meta.url), {
      serialization: 'advanced',
      env: { ...process.env, NODE_OPTIONS: '' },
    })
    children.push(child)
    const end = (to: string, from: string): Channel => ({
      isWire: true,
      send: (message) => {
        if (child.connected) child.send({ to, message })
        return child.connected
      },
      onMessage: (listener) =>
        void child.on('message', (said: { to: string; message: ChannelMessage }) => {
          if (said.to === from) listener(said.message)
        }),
      onClose: (listener) => void child.on('disconnect', listener),
    })
    const lose = async () => {
      child.kill('SIGKILL')
      if (child.connected) await once(child, 'disconnect')
    }
    return { up: end('proxy', 'manage'), down: end('manage', 'proxy'), lose }
  })
  const close = async () => {
    for (const child of children) child.kill('SIGKILL')
    await bus.close()
  }
  return { ...bus, close }
})

test('a Snapshot that comes again, or late, is not given twice', async () => {
  const [up, down] = channelPair()
  const bus = new LocalProxyBus(down)
  const numbers: number[] = []
  bus.onSnapshot(({ number }) => numbers.push(number))
  for (const number of [3, 3, 2, 4]) {
    const document = { number, hash: '', madeAtMs: 0, policy: {} }
    up.send({ kind: 'bus:snapshot', document } as ChannelMessage)
  }
  up.send({ kind: 'foreign' })
  await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(numbers, [3, 4])
})

test('a line that breaks between two messages is found out by the next one', async () => {
  const bus = new LocalProxyBus({
    ...{ isWire: true, send: () => false, onMessage: () => undefined, onClose: () => undefined },
  })
  await assert.rejects(bus.sendSightings([sighting(1)]), { code: 'BUS_CLOSED' })
  await assert.rejects(bus.sendSightings([sighting(2)]), { code: 'BUS_CLOSED' })
})

interface Line {
  readonly up: Channel
  readonly down: Channel
  lose(): Promise<unknown>
}

function hung(manage: LocalManageBus, line: () => Promise<Line>): BusUnderTest {
  return {
    manage,
    isDirect: true,
    async join() {
      const { up, down, lose } = await line()
      const bus = new LocalProxyBus(down)
      manage.attach(up)
      return { bus, lose: async () => void (await lose()) }
    },
    close: async () => manage.close(),
  }
}

/** The ends of a line within a process never break by themselves. */
function breakable(channel: Channel): Channel & { break(): void } {
  const closed: (() => void)[] = []
  let broken = false
  return {
    isWire: channel.isWire,
    send: (message) => !broken && channel.send(message),
    onMessage: (listener) => channel.onMessage((message) => !broken && listener(message)),
    onClose: (listener) => void closed.push(listener),
    break: () => {
      broken = true
      for (const listener of closed) listener()
    },
  }
}
