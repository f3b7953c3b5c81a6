"""Sends one client the weekly e-mail about their shares; `statecast each-local` runs it for each row.

    statecast each-local us-share-holders --run weekly-email-$(date +%G-W%V) -- python send_email.py

SMTP_HOST, SMTP_PORT and MAIL_DOMAIN say where mail goes.
"""

import json
import os
import smtplib
import sys
from email.message import EmailMessage


def main() -> None:
    """Reads the row, and sends its mail; a mail server that refuses it ends the program with another status than 0."""
    holder = json.load(sys.stdin)["value"]
    domain = os.environ.get("MAIL_DOMAIN", "example.org")
    mail = EmailMessage()
    mail["From"] = f"Your broker <broker@{domain}>"
    mail["To"] = f"{holder['client']}@{domain}"
    mail["Subject"] = "Your shares this week"
    # The same at every attempt: a mail server or reader that has it already knows it again.
    mail["Message-ID"] = f"<{os.environ['STATECAST_JOB_ROW_ID']}@{domain}>"
    mail.set_content(f"You hold {holder['shares']} shares in {holder['positions']} positions.")
    with smtplib.SMTP(os.environ.get("SMTP_HOST", "127.0.0.1"), int(os.environ.get("SMTP_PORT", "25"))) as server:
        server.send_message(mail)


if __name__ == "__main__":
    main()
