"""A WebSocket over HTTP/2 (RFC 8441) with the library h2: sends hello, and writes what comes back."""

import json
import socket
import sys

import h2.config
import h2.connection
import h2.events
import h2.settings

MASK = b"\x01\x02\x03\x04"


def frame(opcode, payload):
    masked = bytes(byte ^ MASK[i % 4] for i, byte in enumerate(payload))
    return bytes([0x80 | opcode, 0x80 | len(payload)]) + MASK + masked


def main():
    to = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    connection = h2.connection.H2Connection(config=h2.config.H2Configuration(header_encoding="utf-8"))
    connection.initiate_connection()
    to.sendall(connection.data_to_send())
    said = {}
    message = b""
    while True:
        for event in connection.receive_data(to.recv(65535)):
            if isinstance(event, h2.events.RemoteSettingsChanged):
                code = h2.settings.SettingCodes.ENABLE_CONNECT_PROTOCOL
                said["offered"] = event.changed_settings[code].new_value
                fields = [
                    (":method", "CONNECT"),
                    (":protocol", "websocket"),
                    (":scheme", "http"),
                    (":authority", "a.example.test"),
                    (":path", "/socket"),
                    ("sec-websocket-version", "13"),
                ]
                connection.send_headers(1, fields)
            elif isinstance(event, h2.events.ResponseReceived):
                said["status"] = dict(event.headers)[":status"]
                connection.send_data(1, frame(1, b"hello"))
            elif isinstance(event, h2.events.DataReceived):
                connection.acknowledge_received_data(event.flow_controlled_length, 1)
                # The app sends a PING before each message.
                message += event.data
                if message.endswith(b"hello") and "message" not in said:
                    said["message"] = message[-7:].hex()
                    connection.send_data(1, frame(8, b"\x03\xe8"))
            elif isinstance(event, h2.events.StreamEnded):
                connection.end_stream(1)
                to.sendall(connection.data_to_send())
                print(json.dumps(said))
                return
        to.sendall(connection.data_to_send())


main()
