"""Runs an SMTP server. Prints its port, then each mail as a line of JSON. A recipient at `full.example` is refused."""

import asyncio
import email
import email.policy
import json

from aiosmtpd.smtp import SMTP


class Handler:
    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.endswith("@full.example"):
            return "550 mailbox unavailable"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        mail = email.message_from_bytes(envelope.content, policy=email.policy.default)
        parts = {
            "to": envelope.rcpt_tos,
            "from": envelope.mail_from,
            "headers": {name.lower(): str(value) for name, value in mail.items()},
            "text": mail.get_content(),
        }
        print(json.dumps(parts), flush=True)
        return "250 OK"


async def main():
    handler = Handler()
    server = await asyncio.get_running_loop().create_server(lambda: SMTP(handler), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
