"""API of tokens: a token for a name and a password."""

from typing import ClassVar

from django.contrib.auth import authenticate
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.authentication import BaseAuthentication
from rest_framework.authtoken.models import Token
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView


class Credentials(serializers.Serializer):
    """A name and a password."""

    username = serializers.CharField(max_length=150)
    password = serializers.CharField(max_length=4096, trim_whitespace=False)


class TokenAnswer(serializers.Serializer):
    """The token for the header `Authorization: Token …`."""

    token = serializers.CharField()


class TokenView(APIView):
    """Exchanges a name and a password for the person's API token."""

    authentication_classes: ClassVar[list[type[BaseAuthentication]]] = []
    permission_classes: ClassVar[list[type[BasePermission]]] = []

    def get_authenticate_header(self, request: Request) -> str:
        """Return the scheme that a 401 for wrong credentials must name."""
        return "Token"

    @extend_schema(
        operation_id="token_create",
        request=Credentials,
        responses={
            200: TokenAnswer,
            401: OpenApiResponse(description="Wrong name or password"),
            429: OpenApiResponse(description="Too many wrong passwords: wait for Retry-After"),
        },
        auth=[],
    )
    def post(self, request: Request) -> Response:
        """Answer {token}; 401 for a wrong name or password, 429 after too many."""
        credentials = Credentials(data=request.data)
        credentials.is_valid(raise_exception=True)
        # django-axes marks the request that it is given, and its middleware reads Django's own.
        user = authenticate(request=request._request, **credentials.validated_data)
        if user is None:
            raise AuthenticationFailed("Wrong name or password.")
        return Response({"token": Token.objects.get_or_create(user=user)[0].key})
