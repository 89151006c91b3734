import type { Socket } from 'node:net'

/** What listens to the socket of a connection. */
export interface SocketListener {
  came(chunk: Buffer): void
  drained(): void
  ended(): void
  closed(): void
}

/** All connections share these functions: an idle one would keep a quarter of a KiB for four of its own. */
export function listenTo(socket: Socket, listener: SocketListener): void {
  ;(socket as Heard)[LISTENER] = listener
  socket.on('data', onData).on('drain', onDrain).on('end', onEnd).on('close', onClose)
}

export function stopListening(socket: Socket): void {
  socket.off('data', onData).off('drain', onDrain).off('end', onEnd).off('close', onClose)
}

function onData(this: Heard, chunk: Buffer): void {
  this[LISTENER].came(chunk)
}

function onDrain(this: Heard): void {
  this[LISTENER].drained()
}

function onEnd(this: Heard): void {
  this[LISTENER].ended()
}

function onClose(this: Heard): void {
  this[LISTENER].closed()
}

const LISTENER = Symbol('listener')
type Heard = Socket & { [LISTENER]: SocketListener }
